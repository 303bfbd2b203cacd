/** The completion script for bash. Pure. */
import type { CommandModel, OptionModel, Value } from "./model.ts";
import { quoted } from "./quoted.ts";

export function bash({ commands, options }: CommandModel): string {
  const cases = commands.flatMap((command) => [
    caseOf(command.name, command),
    ...command.commands.map((each) => caseOf(`${command.name} ${each.name}`, each)),
  ]);
  const groups = commands.filter((command) => command.commands.length > 0).map(({ name }) => name);
  return `_svc() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path=\${COMP_WORDS[1]}
  local kind=word words= flags= before=
  COMPREPLY=()
  # The shell takes --name=value apart.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  if ((COMP_CWORD == 1)); then
    words=${list(commands.map(({ name }) => name))} flags=${flagsOf(options)}
  else
    case $path in
      ${groups.join("|") || "''"}) if ((COMP_CWORD > 2)); then path="$path \${COMP_WORDS[2]}"; fi ;;
    esac
    case $path in
${cases.join("\n")}
      *) kind=other ;;
    esac
  fi
  if [[ -n $flags && $current == -* ]]; then kind=word words=$flags; fi
  case $kind in
    file) return ;;
    folder)
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      compopt -o filenames 2>/dev/null || true
      ;;
    list)
      if [[ $current == *,* ]]; then before=\${current%,*}, current=\${current##*,}; fi
      mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$current")
      ;;
    word) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
  esac
  # Where no file is meant none is offered.
  compopt +o default 2>/dev/null || true
}
complete -o default -F _svc svc ./svc
`;
}

/** After an option that takes a value, offers only values; otherwise options and arguments. */
function caseOf(path: string, command: CommandModel): string {
  const values = command.options.flatMap((option) =>
    option.value === undefined ? [] : [valueCase(option, option.value)],
  );
  const argument: Value =
    command.commands.length > 0
      ? { kind: "word", words: command.commands.map(({ name }) => name) }
      : command.argument;
  return `      ${quoted(path)})
        case $previous in
${[...values, `          *) ${assigned(argument)} flags=${flagsOf(command.options)} ;;`].join("\n")}
        esac
        ;;`;
}

function valueCase({ flags }: OptionModel, value: Value): string {
  return `          ${flags.join("|")}) ${assigned(value)} ;;`;
}

function assigned(value: Value): string {
  return "words" in value ? `kind=${value.kind} words=${list(value.words)}` : `kind=${value.kind}`;
}

const flagsOf = (options: readonly OptionModel[]) => list(options.flatMap(({ flags }) => flags));
const list = (words: readonly string[]) => quoted(words.join(" "));
