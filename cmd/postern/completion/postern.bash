# Completion of postern for bash: source <(postern completion bash)
_postern() {
	local word words=() joined='' proposal i
	# bash cuts words at = and :, which are parts of them here.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if ((${#words[@]})) && [[ -n $joined || $word == [=:]* ]]; then
			words[${#words[@]} - 1]+=$word
		else
			words+=("$word")
		fi
		joined=''
		[[ $word == *[=:] ]] && joined=yes
	done
	# What is in front of the last = or : stays where it is.
	word=${words[${#words[@]} - 1]}
	local kept=''
	[[ $word == *[=:]* && $COMP_WORDBREAKS == *[=:]* ]] && kept=${word%"${word##*[=:]}"}
	COMPREPLY=()
	while IFS= read -r proposal; do
		printf -v proposal %q "${proposal#"$kept"}"
		COMPREPLY+=("$proposal")
	done < <("${COMP_WORDS[0]/#\~/$HOME}" complete-words -- "${words[@]}" 2>/dev/null)
}
complete -o default -F _postern postern
