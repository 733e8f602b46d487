"""The scripts that make a shell complete `boxcar`: each asks `boxcar --complete -- WORDS`."""

from __future__ import annotations

SCRIPTS = {
    "bash": """\
# Completion of boxcar in bash; in ~/.bashrc: source <(boxcar --print-completion-script=bash)
_boxcar() {
    local IFS=$'\\n'
    COMPREPLY=($(boxcar --complete -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null))
    # bash replaces only what stands behind its own last break, = or :.
    if [[ "$COMP_WORDBREAKS" == *=* && "${COMP_WORDS[COMP_CWORD-1]}" == "=" ]] ||
       [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]]; then
        COMPREPLY=("${COMPREPLY[@]#--*=}")
    fi
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
}
complete -o default -F _boxcar boxcar
""",
    "zsh": """\
# Completion of boxcar in zsh; in ~/.zshrc: source <(boxcar --print-completion-script=zsh)
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_boxcar() {
    local -a found
    found=("${(@f)$(boxcar --complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    if (( ! $#found )); then
        _files
    elif [[ $#found -eq 1 && "${found[1]}" == *= ]]; then
        compadd -S '' -a found
    else
        compadd -a found
    fi
}
compdef _boxcar boxcar
""",
    "fish": """\
# Completion of boxcar in fish; once:
#   boxcar --print-completion-script=fish > ~/.config/fish/completions/boxcar.fish
function __boxcar_complete
    set -l current (commandline -ct)[1]
    set -l found (boxcar --complete -- (commandline -opc) "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete --command boxcar --no-files --arguments '(__boxcar_complete)'
""",
}
