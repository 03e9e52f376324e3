//go:build !race

package pdftext

const race = false
