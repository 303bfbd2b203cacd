/** The status of a copy, from the state file of its supervisor and from its components. Changes nothing. */

import { contentOf, type ImageContent } from "../install/image.ts";
import type { Instance } from "../instance.ts";
import { countKeys, describeMode } from "../mode.ts";
import { httpGet, readyAnswers } from "../probes.ts";
import { Problem } from "../problem.ts";
import { componentHealth } from "../readiness.ts";
import type { Copy } from "../running-copy.ts";
import { changedSettingsFile } from "../settings/changed.ts";
import type { State } from "../supervisor/state.ts";
import { startAgain } from "../svc-line.ts";
import { runsIn } from "../topology.ts";
import { type Version, versionOf } from "../version.ts";
import { programsOf, type Queue, queuesOf } from "./metrics.ts";

export interface ComponentStatus {
  name: string;
  /** The process that the component runs in. */
  process: string;
  pid?: number;
  /** `ready`, or what is wrong. */
  state: string;
  started_at?: string;
  /** How often the component was restarted after it died. */
  restarts: number;
}

export interface Running {
  status: "ready" | "not_ready";
  phase: State["phase"];
  /** The address with /v1. */
  url: string;
  mode: string;
  started_at: string;
  uptime_s: number;
  pid: number;
  background: boolean;
  data_dir: string;
  version: Version;
  /** A settings file that was changed after the start and does not count yet. */
  changed_settings?: string;
  /** The image that programs run in. */
  image?: ImageContent;
  /** The image of the next ./svc up, when it is a different one. */
  next_image?: ImageContent;
  components: ComponentStatus[];
  /** Absent where the metrics could not be read. */
  slots?: { total: number; running: number; paused: number };
  queues?: Record<string, Queue>;
  /** Why numbers are missing. */
  metrics_problem?: string;
}

export type Status = { installed: Version } & (Running | { status: "not_running"; data_dir: string });

export async function statusOf({ instance, state }: Copy, metricsToken: string): Promise<Status> {
  const installed = versionOf();
  if (state === undefined) return { status: "not_running", data_dir: instance.dataDir, installed };
  if (state.build === undefined)
    throw new Problem("the running copy was started by an older ./svc", startAgain());
  const [components, ready, numbers] = await Promise.all([
    componentsOf({ instance, state }),
    readyAnswers(`${state.url}/v1/ready`),
    numbersOf(state, metricsToken),
  ]);
  const changed = changedSettingsFile(state.settingsFile);
  const isReady = ready === undefined && components.every((component) => component.state === "ready");
  return {
    status: isReady ? "ready" : "not_ready",
    phase: state.phase,
    url: `${state.url}/v1`,
    mode: state.mode === undefined ? "unknown" : describeMode(state.mode, await countKeys(state.mode)),
    started_at: state.startedAt,
    uptime_s: Math.round((Date.now() - Date.parse(state.startedAt)) / 1000),
    pid: state.supervisor.pid,
    background: state.background,
    data_dir: state.dataDir,
    version: state.build,
    installed,
    ...(changed === undefined ? {} : { changed_settings: changed }),
    ...imagesOf(instance, state),
    components,
    ...numbers,
  };
}

function imagesOf({ image: link }: Instance, { image }: State): Pick<Running, "image" | "next_image"> {
  const next = contentOf(link);
  return {
    ...(image === undefined ? {} : { image }),
    ...(next === undefined || next.folder === image?.folder ? {} : { next_image: next }),
  };
}

async function componentsOf({ instance, state }: Required<Copy>): Promise<ComponentStatus[]> {
  const { components, ports, url } = state as State;
  const health = await componentHealth({ ...instance, url, ports }, components);
  return health.map(([name, reason]) => {
    const process = components.find((candidate) => runsIn(candidate.name, name));
    return {
      name,
      process: process?.name ?? name,
      ...(process?.process === undefined ? {} : { pid: process.process.pid }),
      state: reason ?? "ready",
      ...(process?.startedAt === undefined ? {} : { started_at: process.startedAt }),
      restarts: process?.restarts ?? 0,
    };
  });
}

async function numbersOf(
  { ports, slots: total }: State,
  token: string,
): Promise<Pick<Running, "slots" | "queues" | "metrics_problem">> {
  const headers: Record<string, string> = token === "" ? {} : { authorization: `Bearer ${token}` };
  const [worker, runner] = await Promise.all([
    httpGet(`http://127.0.0.1:${ports.worker}/metrics`, headers),
    httpGet(`http://127.0.0.1:${ports.runner}/metrics`, headers),
  ]);
  const closed = [worker, runner].some((answer) => "status" in answer && answer.status === 401);
  if (closed) return { metrics_problem: "SVC_METRICS_TOKEN is set there, and another one or none here" };
  const bodyOf = (answer: typeof worker) =>
    "status" in answer && answer.status === 200 ? answer.body : undefined;
  const programs = programsOf(bodyOf(runner) ?? "");
  const jobs = bodyOf(worker);
  return {
    ...(programs === undefined ? {} : { slots: { total, ...programs } }),
    ...(jobs === undefined ? {} : { queues: queuesOf(jobs) }),
  };
}
