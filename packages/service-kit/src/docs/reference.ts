/** Reference pages made from the tables that the code runs on: configuration and error codes. */
import { ERRORS } from "@svc/contracts";
import { VARIABLES } from "../config/variables.ts";

const cell = (text: string) => text.replaceAll("|", "\\|");

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n");
}

function shownDefault(fallback: unknown, note: string | undefined): string {
  if (note !== undefined) return note;
  if (Array.isArray(fallback)) return fallback.length > 0 ? `\`${fallback.join(",")}\`` : "-";
  if (typeof fallback === "object") return "`{}`";
  return fallback === "" ? "-" : `\`${String(fallback)}\``;
}

export function configurationPage(): string {
  const rows = Object.entries(VARIABLES).map(([name, { fallback, doc, secret, ...variable }]) => {
    const note = "note" in variable ? (variable.note as string | undefined) : undefined;
    return [`\`${name}\``, shownDefault(fallback, note), secret ? `${doc} (secret)` : doc];
  });
  return `# Configuration

Made by \`npm run docs\` from \`packages/service-kit/src/config/variables.ts\`.

Every component is configured by environment variables only. All components know all names, so one file of variables
serves them all. Plain numbers are milliseconds or bytes unless the name says seconds. Sizes take \`k\`, \`m\`, \`g\`
(powers of 1024). A value that does not parse or is out of range stops the process, and so does an unknown \`SVC_\` name;
the message names the nearest known one. At start each component logs what differs from the defaults, secrets only as
\`[set]\`. \`./svc up\` sets what one machine needs.

${table(["variable", "default", "meaning"], rows)}
`;
}

export function errorsPage(): string {
  const rows = Object.entries(ERRORS).map(([code, { status, message }]) => [
    `\`${code}\``,
    String(status),
    message,
  ]);
  return `# Error codes

Made by \`npm run docs\` from \`packages/contracts/src/errors.ts\`.

An error answer is \`{error, message, request_id, details?}\`: \`error\` is one of these codes and never changes its meaning,
\`message\` is a sentence for a person, \`details\` names the wrong places as \`{path, problem}\`. The status of a failed
*program* is 200: these codes speak of the service. Statuses are the usual ones; on \`/v1/exec\` a body that is too large
is a 422, because clients read 413 there as "try again".

${table(["code", "status", "meaning"], rows)}
`;
}
