/** Reference pages made from the tables that the code runs on: configuration, secrets and error codes. */
import { overriddenSettings } from "@svc/cli/environment";
import { resolveInstance } from "@svc/cli/instance";
import { ADVICE, ERRORS, type ErrorCode } from "@svc/contracts";
import { HOLDERS } from "@svc/service-kit/config/holders";
import type { Variable } from "@svc/service-kit/config/types";
import { VARIABLES, VARIABLES_BY_READER } from "@svc/service-kit/config/variables";
import { table } from "./table.ts";

function shownDefault(fallback: unknown, note: string | undefined): string {
  if (note !== undefined) return note;
  if (Array.isArray(fallback)) return fallback.length > 0 ? `\`${fallback.join(",")}\`` : "-";
  if (typeof fallback === "object") return "`{}`";
  return fallback === "" ? "-" : `\`${String(fallback)}\``;
}

/** Text between a heading and its table. */
const NOTES: Record<string, string> = {
  MicroVMs:
    "These variables have no effect where `KVM_ENABLED` is not `true`, and cause a warning there. A runner that is asked for microVMs does not start: the launcher takes its place.",
  "Not offered by this version": "These variables have no effect and cause a warning.",
  "Tracing: every component":
    "[operate.md](operate.md#tracing) says what is traced, and how. Names and meanings are those of OpenTelemetry, except for the first variable.",
};

function variablesTable([reader, variables]: [string, Readonly<Record<string, Variable<unknown>>>]): string {
  const rows = Object.entries(variables).map(([name, { fallback, note, doc, secret }]) => [
    `\`${name}\``,
    shownDefault(fallback, note),
    secret ? `${doc} (secret)` : doc,
  ]);
  const note = NOTES[reader] === undefined ? "" : `${NOTES[reader]}\n\n`;
  return `## ${reader}\n\n${note}${table(["variable", "default", "meaning"], rows)}`;
}

/** Variables that ./svc sets itself, whatever an operator sets. */
function overridden(): string[] {
  const everything = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, "/set"]));
  return overriddenSettings(resolveInstance({}, {}), everything).map((name) => `\`${name}\``);
}

export function configurationPage(): string {
  return `# Configuration

Made by \`npm run docs\` from \`packages/service-kit/src/config/variables/\`.

Environment variables alone configure every component. All components know all names, so one file of variables
serves them all. Sizes take \`k\`, \`m\`, \`g\` (powers of 1024).

A process does not start with a value that does not parse or is out of range, or with an unknown \`SVC_\` name. The message names the known variable that you
probably meant. Any other name within two letters of a known one causes a warning. At start each component logs what differs from the defaults. It
shows secrets only as \`[set]\` ([logs.md](logs.md)).

## Where settings come from

A component that you start by hand knows only defaults and environment. Every \`./svc\` command reads these sources; a later one wins:

1. the defaults below, and what \`./svc up\` sets where nothing is set: it is named beside the default;
2. the settings file: \`--settings FILE\`, else \`SVC_SETTINGS_FILE\`, else \`svc.env\` in the data folder if it exists;
3. the environment; an empty value counts as not set;
4. flags: \`--data-dir\`, \`--port-offset\`, \`--languages\`, \`--packages\`, \`--sessions\`, \`--microvm\`.

\`./svc config\` shows each value in force, where it comes from, and its default. \`./svc config --json\` prints the same for programs.

The settings file has \`KEY=value\` lines, and comments that begin with \`#\` or \`;\`. Quotes and backslashes work as in
systemd's \`EnvironmentFile=\` (\`man systemd.exec\`):

- Between single quotes everything stands for itself.
- Between double quotes a backslash escapes a double quote, a backslash, a backtick and a dollar sign.
- Quoted values may have several lines.
- Without quotes the value is the rest of the line. A backslash escapes the next character or, at the end of a line, joins the next line.

Other lines, text after a closing quote and names that are set twice are refused; the message has file and line. Relative paths start at the folder of the
settings file. Keep a file with secrets at mode 0600.

\`./svc up\` checks all settings of all components, ports and the data folder before it installs or builds anything, and reports all
problems at once. It starts in local mode unless \`LOCAL_MODE=false\`,
\`SVC_AUTH_PROVIDER=librechat-jwt\`, a source of \`SVC_JWT_*\` keys or \`SVC_API_KEYS_FILE\` turns authentication on
([authentication.md](authentication.md)). It refuses \`LOCAL_MODE=true\` beside one of these. It makes the secrets
between components in every mode ([secrets.md](secrets.md)).

\`./svc up\` always sets the addresses by which its components find each other. So these variables have no effect with it, and it says so:
${overridden().join(", ")}.

${Object.entries(VARIABLES_BY_READER).map(variablesTable).join("\n\n")}
`;
}

/** As the columns of the table name them. */
const COMPONENTS = ["api", "worker", "runner", "egress-gateway", "file-server", "tool-call-server"] as const;
const WITHOUT = ["jaild", "redis", "program"];

export function secretsPage(): string {
  const rows = Object.entries(HOLDERS).map(([name, holders]) => [
    `\`${name}\``,
    ...COMPONENTS.map((component) => (holders.includes(component) ? "holds" : "-")),
    ...WITHOUT.map(() => "-"),
  ]);
  return `# Secrets

Made by \`npm run docs\` from \`packages/service-kit/src/config/holders.ts\`.

This table says which component holds which confidential variable. \`-\` means: must not hold it. A component that gets such a variable
all the same, for example from one file of variables for all, ignores it and says so in its log. It is better to give each component a file
of its own: an attacker who takes over a process can read its environment. \`program\` is the untrusted program in its jail.

${table(["variable", ...COMPONENTS, ...WITHOUT], rows)}

\`SVC_INTERNAL_TOKEN_<caller>_TO_<component>\` authenticates one component to another, for the routes that it uses. An attacker who controls a
component can call what that component calls, and cannot pose as another.

\`SVC_INTERNAL_SERVICE_TOKEN\` is one token for all pairs. A component sends it where a pair has no token of its own. It opens all internal routes of
each component that has it. If each pair has its own token, give \`SVC_INTERNAL_SERVICE_TOKEN\` to none; the API then needs \`SVC_CONTINUATION_SECRET\`.

The table has public keys too: an attacker who can replace one can authenticate with a key of their own. \`SVC_JWT_PUBLIC_KEYS_DIR\` names a
directory that the API alone must read. \`SVC_API_KEYS_FILE\` names a file of mode 0600 with the digests of API keys. The runner gets its capabilities
with each run: a manifest and a grant, which end with the run.

## What is refused

There are no built-in secrets. A component does not start without its own secrets, nor with a value that protects nothing. The message
names the variable and never shows the value.

| variable | must be |
| --- | --- |
| \`SVC_INTERNAL_SERVICE_TOKEN\`, \`SVC_INTERNAL_TOKEN_*\` (each of them), \`SVC_EGRESS_GRANT_SECRET\`, \`SVC_EGRESS_GRANT_SECRET_PREVIOUS\`, \`SVC_CONTINUATION_SECRET\`, \`SVC_METRICS_TOKEN\` | 32 bytes or more, 8 or more different characters; no piece again and again, no sequence such as \`abcdef\` or \`987654\`, none of the words password, secret, change-me, example, placeholder |
| \`SVC_EXECUTION_MANIFEST_PRIVATE_KEY\`, \`SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY\`, \`SVC_JWT_PUBLIC_KEY\`, \`SVC_JWT_JWKS_JSON\`, files of \`SVC_JWT_PUBLIC_KEYS_DIR\` | keys of your own; the test keys of RFC 8032 and RFC 8037 are refused in every form |

Examples, tests and documents of this repository show no value that a component would accept. Tests make theirs at random, and a test searches
every file for acceptable texts and keys. Redis and object stores judge their own passwords and keys.

## How to make them

\`\`\`sh
openssl rand -hex 32                                             # a shared secret
openssl genpkey -algorithm ed25519 -out manifest.key             # SVC_EXECUTION_MANIFEST_PRIVATE_KEY
openssl pkey -in manifest.key -pubout -out manifest.pub          # SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY
\`\`\`

\`./svc up\` makes them at its first start, in \`data/secrets.env\` (mode 0600). It gives each process the secrets of its components: a token for each
pair, or only the \`SVC_INTERNAL_SERVICE_TOKEN\`, if you set it. With \`SVC_TOPOLOGY=combined\` one process holds the secrets of all components but the
runner, with a token for all pairs among them. Each component in it takes its own.
`;
}

const BY_WHOM = { caller: "caller", operator: "operator", component: "inner" } as const;

export function errorsPage(): string {
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map((code) => {
    const { status, message } = ERRORS[code];
    const { who, fix, repeat } = ADVICE[code];
    return [`\`${code}\``, String(status), message, BY_WHOM[who], `${fix}.`, repeat];
  });
  return `# Error codes

Made by \`npm run docs\` from \`packages/contracts/src/errors.ts\` and \`error-advice.ts\`.

An error answer is \`{error, message, request_id, details?}\`: \`error\` is one of these codes and never changes its meaning,
\`message\` is a sentence for a person, \`details\` names the wrong places as \`{path, problem}\`. The status of a failed
*program* is 200: these codes speak of the service. Statuses are the usual ones; on \`/v1/exec\` a body that is too large
is a 422, because clients read 413 there as "try again". A 503 has \`Retry-After\`.

*Who* can remove the cause: the caller, or the operator. An inner code is told between components; callers read another one.
*Repeat*: \`no\`, the same request fails again; \`yes\`, it may succeed later, and whether the first one had an effect is not promised;
\`same\`, the identical request may be sent again, and nothing happens twice.

${table(["code", "status", "meaning", "who", "what to do", "repeat"], rows)}
`;
}
