package compose

import (
	"path"
	"strings"
)

// typesByExtension holds the types of files that people attach. It is used instead of the
// system's tables so that one message is the same bytes on every machine.
var typesByExtension = map[string]string{
	".7z":   "application/x-7z-compressed",
	".avif": "image/avif",
	".bmp":  "image/bmp",
	".csv":  "text/csv",
	".doc":  "application/msword",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".epub": "application/epub+zip",
	".flac": "audio/flac",
	".gif":  "image/gif",
	".gz":   "application/gzip",
	".heic": "image/heic",
	".htm":  "text/html",
	".html": "text/html",
	".ics":  "text/calendar",
	".jpeg": "image/jpeg",
	".jpg":  "image/jpeg",
	".json": "application/json",
	".m4a":  "audio/mp4",
	".md":   "text/markdown",
	".mov":  "video/quicktime",
	".mp3":  "audio/mpeg",
	".mp4":  "video/mp4",
	".odp":  "application/vnd.oasis.opendocument.presentation",
	".ods":  "application/vnd.oasis.opendocument.spreadsheet",
	".odt":  "application/vnd.oasis.opendocument.text",
	".ogg":  "audio/ogg",
	".pdf":  "application/pdf",
	".png":  "image/png",
	".ppt":  "application/vnd.ms-powerpoint",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".rtf":  "application/rtf",
	".svg":  "image/svg+xml",
	".tar":  "application/x-tar",
	".tif":  "image/tiff",
	".tiff": "image/tiff",
	".txt":  "text/plain",
	".vcf":  "text/vcard",
	".wav":  "audio/wav",
	".webm": "video/webm",
	".webp": "image/webp",
	".xls":  "application/vnd.ms-excel",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xml":  "application/xml",
	".zip":  "application/zip",
}

// typeByName returns the media type for the extension of a file name.
func typeByName(name string) string {
	if t, ok := typesByExtension[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return anyType
}
