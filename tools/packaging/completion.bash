# Completion of railyard for bash. It asks the program itself for verbs, options and keys, so it can't be out of
# date.

_railyard() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} program=${COMP_WORDS[0]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p')" -- "$current")
    return
  fi
  case $before in
    --set | --vary)
      mapfile -t COMPREPLY < <(compgen -S = -W "$("$program" list keys | grep -oE '^ *[a-z_]+(\.[a-z_]+)+' )" -- "$current")
      compopt -o nospace
      return
      ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" "$verb" --help | grep -oE -- '--[a-z][a-z-]*')" -- "$current")
    return
  fi
  compopt -o default
  COMPREPLY=()
}
complete -F _railyard railyard
