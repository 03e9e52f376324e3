#compdef postern
# Completion of postern for zsh: source <(postern completion zsh), behind compinit;
# or this file as _postern in a directory of fpath.
_postern() {
	local -a proposals
	proposals=("${(@f)$("${(Q)words[1]/#\~/$HOME}" complete-words -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
	proposals=("${(@)proposals:#}")
	if (( ${#proposals} )); then
		compadd -- "${proposals[@]}"
	else
		_files
	fi
}
if [[ ${funcstack[1]} == _postern ]]; then
	_postern "$@"
else
	compdef _postern postern
fi
