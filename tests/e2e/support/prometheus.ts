/** Debian's Prometheus with the files of deploy/monitoring, scraping a copy once a second, and what it answers to queries. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Instance, PORTS, ROOT, SERVICES } from "@svc/cli/instance";
import { freePort } from "@svc/test-kit/system/free-ports";
import { until } from "@svc/test-kit/system/processes";
import { debianProgram } from "./debian-programs.ts";

export const MONITORING = join(ROOT, "deploy/monitoring");
const START_MS = 60_000;

export interface Series {
  metric: Readonly<Record<string, string>>;
  value: number;
}

export interface Prometheus {
  /** Evaluates an expression now; throws where it is none. */
  query: (expression: string) => Promise<Series[]>;
  get: <T>(path: string) => Promise<T>;
  stop: () => Promise<void>;
}

const program = () => debianProgram("prometheus", "usr/bin/prometheus");
/** Of the same package. */
export const promtool = async () => join(dirname(await program()), "promtool");

/** The configuration as it is, with the ports of a copy and a shorter interval. */
function configOf({ ports }: Instance): string {
  let text = readFileSync(join(MONITORING, "prometheus.yml"), "utf8").replaceAll(
    "interval: 15s",
    "interval: 1s",
  );
  for (const service of SERVICES) {
    const address = `"127.0.0.1:${PORTS[service][1]}"`;
    if (!text.includes(address)) throw new Error(`prometheus.yml does not scrape ${service} at ${address}`);
    text = text.replace(address, `"127.0.0.1:${ports[service]}"`);
  }
  return text;
}

export async function startPrometheus(instance: Instance): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), "svc-prometheus-"));
  const port = await freePort();
  writeFileSync(join(folder, "prometheus.yml"), configOf(instance));
  copyFileSync(join(MONITORING, "alerts.yml"), join(folder, "alerts.yml"));
  const flags = {
    "config.file": join(folder, "prometheus.yml"),
    "storage.tsdb.path": join(folder, "data"),
    "web.listen-address": `127.0.0.1:${port}`,
  };
  const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = spawn("/usr/bin/setpriv", ["--pdeathsig", "KILL", "--", await program(), ...words], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const url = `http://127.0.0.1:${port}`;
  const get = async <T>(path: string): Promise<T> => {
    const body = (await (await fetch(`${url}${path}`)).json()) as { status: string; error?: string; data: T };
    if (body.status !== "success") throw new Error(`${path}: ${body.error}`);
    return body.data;
  };
  const ready = () =>
    fetch(`${url}/-/ready`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await until(ready, START_MS, () => said);
  return {
    get,
    query: async (expression) => {
      const { result } = await get<{ result: { metric: Record<string, string>; value: [number, string] }[] }>(
        `/api/v1/query?query=${encodeURIComponent(expression)}`,
      );
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
    stop: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
