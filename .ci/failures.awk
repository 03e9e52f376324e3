# What go test said of failures, in few lines: of a test that failed what it
# printed, of a race its report, and of tests that panicked or ran out of time which
# they were and where in this project's code, below root, each goroutine was.
function told() {
  if (waits != "") print "  " waits
  waits = ""
}
/^(panic|fatal error): / { print; fatal = 1; next }
fatal && /^\t+(running tests:|Test|Fuzz|Benchmark)/ { print; next }
/^goroutine [0-9]+ / { told(); state = $0; sub(/^goroutine [0-9]+ /, "", state); parked = 0; next }
/^testing\.\(\*T\)\.Parallel\(/ { parked = 1 }
fatal && state != "" && /^\t.*\.go:[0-9]+/ && index($1, root) == 1 && !parked {
  place = substr($1, length(root) + 2)
  waits = waits == "" ? state " " place : waits " < " place
  next
}
/^(ok|FAIL|---|===|\?)/ { told(); state = ""; fatal = 0 }
/^WARNING: DATA RACE/ { racing = 1 }
/^[^ \t]/ { shown = /^(--- FAIL|FAIL|signal: |exit status |#)|^[^ \t]+\.go:[0-9]/ }
(racing || shown) && state == "" { print }
/^======/ { racing = 0 }
END { told() }
