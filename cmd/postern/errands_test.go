package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
)

// maxErrands bounds what all errands of testdata/errands.txt cost together, in bytes of
// command strings and answers. Neither depends on the machine.
const maxErrands = 30_000

// TestErrands does everyday errands as an agent does them, and counts what they cost it.
func TestErrands(t *testing.T) {
	t.Parallel()
	h := opened(t, []string{"demo"})
	file, err := os.Open("testdata/errands.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var errand, command, answer string
	var bound, cost, total, errands int
	end := func() {
		if cost > bound {
			t.Errorf("%s: costs %d bytes, more than %d", errand, cost, bound)
		}
		t.Logf("%5d of %5d  %s", cost, bound, errand)
		total += cost
		cost = 0
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		kind, rest, ok := strings.Cut(lines.Text(), " ")
		switch {
		case !ok:
		case kind == "#":
			if errands++; errands > 1 {
				end()
			}
			name, most, _ := strings.Cut(rest, ": ")
			if errand = name; most == "" {
				t.Fatalf("%s has no bound", errand)
			}
			if bound, err = strconv.Atoi(most); err != nil {
				t.Fatal(err)
			}
		case kind == ">":
			command = rest
			a := h.Gateway.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: command})
			a.Delivered()
			answer = string(a.JSON)
			cost += len(command) + len(answer)
		case kind == "=" && !strings.Contains(answer, rest), kind == "!" && strings.Contains(answer, rest):
			t.Errorf("%s: %s: %s%s\n%s", errand, command, kind, rest, answer)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if end(); total > maxErrands || errands < 20 {
		t.Errorf("%d errands cost %d bytes, more than %d", errands, total, maxErrands)
	}
}
