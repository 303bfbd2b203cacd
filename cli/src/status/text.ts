/** The status of a copy for a person. Pure. */

import { imageText } from "../install/image.ts";
import { startAgain, svcLine } from "../svc-line.ts";
import { times } from "../terminal.ts";
import { versionText } from "../version.ts";
import type { ComponentStatus, Running, Status } from "./status.ts";

export function statusText(status: Status): string {
  if (status.status === "not_running")
    return `Not running on ${status.data_dir} (${svcLine("up -d")} starts it).\n`;
  return `${[...heading(status), "", ...table(status.components)].join("\n")}\n`;
}

function heading(status: Running & Pick<Status, "installed">): string[] {
  const { installed, version } = status;
  const other =
    versionText(installed) === versionText(version) ? "" : `; installed: ${versionText(installed)}`;
  const how = status.background ? "in the background" : "in the foreground";
  return [
    row("status", status.status === "ready" ? "ready" : notReady(status)),
    row("address", `${status.url} (${status.mode})`),
    row("running for", `${duration(status.uptime_s)}, ${how}, pid ${status.pid}`),
    row("version", `${versionText(version)}${other}`),
    row("data", status.data_dir),
    ...settings(status),
    ...images(status),
    ...numbers(status),
  ];
}

function settings({ changed_settings: changed }: Running): string[] {
  return changed === undefined
    ? []
    : [row("settings", `${changed} was changed: it counts after ${startAgain()}`)];
}

function images({ image, next_image: next }: Running): string[] {
  const [now, then] = [image, next].map((one) => (one === undefined ? undefined : imageText(one)));
  return [
    ...(now === undefined ? [] : [row("image", now)]),
    ...(then === undefined
      ? []
      : [row("", `after ${startAgain()}: ${now === then ? "a newer one with the same content" : then}`)]),
  ];
}

function notReady({ phase, components }: Running): string {
  if (phase !== "running") return `not ready: ${phase}`;
  const unwell = components.filter(({ state }) => state !== "ready").map(({ name }) => name);
  return unwell.length === 0 ? "not ready" : `not ready: ${unwell.join(", ")}`;
}

function numbers({ slots, queues, metrics_problem: problem }: Running): string[] {
  if (problem !== undefined) return [row("slots, queues", `not known: ${problem}`)];
  const lines = [];
  if (slots !== undefined) {
    const paused = slots.paused === 0 ? "" : `, ${slots.paused} paused`;
    lines.push(row("slots", `${slots.running} of ${slots.total} in use${paused}`));
  }
  const counts = Object.entries(queues ?? {}).map(
    ([name, { waiting, delayed, active }]) => `${name} ${waiting + delayed} waiting, ${active} running`,
  );
  if (counts.length > 0) lines.push(row("queues", counts.join("; ")));
  return lines;
}

const row = (label: string, text: string) => `${label.padEnd(14)} ${text}`;

const MAX_STATE = 200;

function table(components: readonly ComponentStatus[]): string[] {
  const shared = components.filter(({ name, process }) => name !== process);
  const lines = components.map(({ name, pid, state, restarts }) => {
    const again = restarts === 0 ? "" : `, started again ${times(restarts)}`;
    return `${name.padEnd(17)} ${String(pid ?? "-").padStart(8)}  ${state.slice(0, MAX_STATE)}${again}`;
  });
  const note = shared.length === 0 ? [] : [`(${shared.map(({ name }) => name).join(", ")} share a process)`];
  return [`${"component".padEnd(17)} ${"pid".padStart(8)}  state`, ...lines, ...note];
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration in its two largest units. */
export function duration(seconds: number): string {
  const units = [
    [DAY, "d"],
    [HOUR, "h"],
    [MINUTE, "min"],
    [1, "s"],
  ] as const;
  const first = units.findIndex(([size]) => seconds >= size);
  if (first === -1) return "0 s";
  return units
    .slice(first, first + 2)
    .map(([size, unit], at) => {
      const larger = units[first + at - 1]?.[0];
      return `${Math.floor((at === 0 ? seconds : seconds % (larger as number)) / size)} ${unit}`;
    })
    .filter((text, at) => at === 0 || !text.startsWith("0 "))
    .join(" ");
}
