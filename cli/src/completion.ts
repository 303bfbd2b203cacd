/**
 * Completion scripts for interactive shells, made from the commands' own declarations. Nothing of ./svc runs and nothing
 * of the line is evaluated while a user types. Where no option is begun, and for values of options, files are completed.
 */
import type { Command, Option } from "commander";

/** Each makes the script of one shell. */
export const SHELLS: Readonly<Record<string, (commands: readonly Command[]) => string>> = { bash, zsh, fish };

function bash(commands: readonly Command[]): string {
  const cases = commands.map((command) => {
    const flags = options(command).flatMap(({ short, long }) => [short, long].filter(Boolean));
    return `    ${command.name()}) words=${quoted(flags.join(" "))} ;;`;
  });
  return `_svc() {
  local current=\${COMP_WORDS[COMP_CWORD]} words=
  COMPREPLY=()
  case $((COMP_CWORD > 1)),\${COMP_WORDS[1]} in
    0,*) words=${quoted(commands.map((command) => command.name()).join(" "))} ;;
${cases.map((line) => line.replace(/^ {4}/, "    1,")).join("\n")}
  esac
  if [[ $COMP_CWORD -gt 1 && $current != -* ]]; then return; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _svc svc
`;
}

function zsh(commands: readonly Command[]): string {
  const names = commands.map((command) => `    ${quoted(`${command.name()}:${command.description()}`)}`);
  const cases = commands.map((command) => {
    const specs = options(command).map((option) => {
      const value = option.required ? ":value:_files" : "";
      const doc = `[${option.description.replace(/[\\[\]:]/g, "\\$&")}]${value}`;
      const repeated = option.parseArg === undefined ? "" : "*";
      return [option.short, option.long].filter(Boolean).map((flag) => quoted(`${repeated}${flag}${doc}`));
    });
    return `    ${command.name()}) _arguments -s ${[...specs.flat(), quoted("*:file:_files")].join(" \\\n      ")} ;;`;
  });
  return `#compdef svc
_svc() {
  local -a commands=(
${names.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join("\n")}
  esac
}
compdef _svc svc
`;
}

function fish(commands: readonly Command[]): string {
  const names = commands.map((command) => command.name()).join(" ");
  const lines = commands.flatMap((command) => [
    `complete -c svc -f -n ${quoted(`not __fish_seen_subcommand_from ${names}`)} -a ${command.name()} -d ${quoted(command.description())}`,
    ...options(command).map((option) => {
      const flags = [option.short?.replace(/^-/, "-s "), option.long?.replace(/^--/, "-l ")].filter(Boolean);
      const value = option.required ? " -r" : "";
      const when = quoted(`__fish_seen_subcommand_from ${command.name()}`);
      return `complete -c svc -n ${when} ${flags.join(" ")}${value} -d ${quoted(option.description)}`;
    }),
  ]);
  return `${lines.join("\n")}\n`;
}

/** Of the command and of the commands below it. */
function options(command: Command): readonly Option[] {
  const all = [command, ...command.commands].flatMap((each) => each.createHelp().visibleOptions(each));
  return [...new Map(all.map((option) => [option.flags, option])).values()];
}

/** Quotes a text as one word, in a form that all three shells read alike. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
