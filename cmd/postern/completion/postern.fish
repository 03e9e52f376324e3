# Completion of postern for fish: postern completion fish | source
function __postern_complete
    set -l words (commandline -opc)
    set -l proposals ($words[1] complete-words -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $proposals) -gt 0
        printf '%s\n' $proposals
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c postern -f -a '(__postern_complete)'
