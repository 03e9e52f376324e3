package fetch

import (
	"time"

	goimap "github.com/emersion/go-imap/v2"
)

// HeaderHolds matches messages that have some text in a header field.
func HeaderHolds(field, text string) goimap.SearchCriteria {
	return goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: field, Value: text}}}
}

// AnyOf matches where one of the criteria does. It nests as little as possible, since
// servers bound the depth. It is nil without criteria.
func AnyOf(all []goimap.SearchCriteria) *goimap.SearchCriteria {
	switch n := len(all); n {
	case 0:
		return nil
	case 1:
		return &all[0]
	default:
		return &goimap.SearchCriteria{Or: [][2]goimap.SearchCriteria{{*AnyOf(all[:n/2]), *AnyOf(all[n/2:])}}}
	}
}

// MayBeDated adds bounds to a search that every message within the times has. The server
// knows only days, without their zone, so the bounds are a day wider on either side; a
// message without a readable Date counts by its INTERNALDATE.
func MayBeDated(c *goimap.SearchCriteria, since, until time.Time) {
	if !since.IsZero() {
		day := since.UTC().AddDate(0, 0, -1)
		c.Or = append(c.Or, [2]goimap.SearchCriteria{{SentSince: day}, {Since: day}})
	}
	if !until.IsZero() {
		day := until.UTC().AddDate(0, 0, 2)
		c.Or = append(c.Or, [2]goimap.SearchCriteria{{SentBefore: day}, {Before: day}})
	}
}
