/** The table of docs/deploy.md of which component calls which, made from the table that the code and the network policies share. */
import { CALLS, LISTENS, type Party, type Placed } from "@svc/service-kit/config/calls";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { table } from "./table.ts";

export const CALLED: Record<Party, string> = {
  api: "API",
  worker: "worker",
  runner: "runner",
  launcher: "launcher",
  "egress-gateway": "gateway",
  "file-server": "file server",
  "tool-call-server": "tool call server",
  clients: "the proxy",
  monitoring: "monitoring",
  redis: "Redis",
  objects: "objects",
};

const HEAD = ["component", "port", "is called by", "calls"];

/** Whom a party calls, and who calls it. */
export const calledBy = (party: Party) => CALLS.filter(({ to }) => to === party).map(({ from }) => from);
export const calls = (party: Party) => CALLS.filter(({ from }) => from === party).map(({ to }) => to);

export function callsTable(): string {
  const names = (parties: readonly Party[]) => parties.map((party) => CALLED[party]).join(", ") || "-";
  const rows = (Object.keys(LISTENS) as Placed[]).map((component) => [
    component === "runner" ? "runner, beside jaild" : component,
    String(VARIABLES[LISTENS[component].port].fallback),
    names(calledBy(component)),
    `${names(calls(component))}${component === "runner" ? "; jaild by a unix socket" : ""}`,
  ]);
  return table(HEAD, [...rows, ["Redis", "6379", names(calledBy("redis")), "-"]]);
}

/** A page with its table of calls as it is now. Throws where the page has none. */
export function withCalls(page: string): string {
  const begin = page.indexOf(`| ${HEAD.join(" | ")} |`);
  if (begin < 0) throw new Error("the page has no table of calls");
  const end = page.indexOf("\n\n", begin);
  return `${page.slice(0, begin)}${callsTable()}${page.slice(end)}`;
}
