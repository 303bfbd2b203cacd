import { describe, expect, it } from "vitest";
import { programsOf, queuesOf } from "../../src/status/metrics.ts";
import type { Running } from "../../src/status/status.ts";
import { duration, statusText } from "../../src/status/text.ts";

const running: Running & { installed: { version: string; commit: string } } = {
  status: "ready",
  phase: "running",
  url: "http://127.0.0.1:3112/v1",
  mode: "no authentication, this machine only",
  started_at: "2026-01-01T00:00:00.000Z",
  uptime_s: 7265,
  pid: 800,
  background: true,
  data_dir: "/srv/data",
  version: { version: "0.1.0", commit: "0123456789ab" },
  installed: { version: "0.1.0", commit: "0123456789ab" },
  components: [
    { name: "redis", process: "redis", pid: 801, state: "ready", restarts: 0 },
    { name: "runner", process: "runner", pid: 802, state: "ready", restarts: 2 },
    { name: "api", process: "combined", pid: 803, state: "ready", restarts: 0 },
    { name: "worker", process: "combined", pid: 803, state: "ready", restarts: 0 },
  ],
  slots: { total: 8, running: 3, paused: 0 },
  queues: {
    python: { waiting: 2, active: 3, delayed: 1 },
    other: { waiting: 0, active: 0, delayed: 0 },
  },
};

describe("the status of a copy in words", () => {
  it("names the image that it has, and the one that waits for the next start", () => {
    const image = { folder: "/one", languages: ["bash", "php"], packages: [] };
    const lines = (next?: typeof image) =>
      statusText({ ...running, image, ...(next === undefined ? {} : { next_image: next }) })
        .split("\n")
        .filter((line) => /php|newer|bash/.test(line));
    expect(lines()).toEqual(["image          bash, php"]);
    expect(lines({ ...image, folder: "/two" })[1]?.trim()).toBe(
      "after ./svc down, then ./svc up: a newer one with the same content",
    );
    expect(lines({ ...image, languages: ["bash"] })[1]?.trim()).toBe("after ./svc down, then ./svc up: bash");
  });

  it("names a settings file that does not count yet", () => {
    const lines = statusText({ ...running, changed_settings: "/srv/data/svc.env" }).split("\n");
    expect(lines[5]).toBe(
      "settings       /srv/data/svc.env was changed: it counts after ./svc down, then ./svc up",
    );
  });

  it("of one that is ready", () => {
    expect(statusText(running)).toMatchInlineSnapshot(`
      "status         ready
      address        http://127.0.0.1:3112/v1 (no authentication, this machine only)
      running for    2 h 1 min, in the background, pid 800
      version        0.1.0 (commit 0123456789ab)
      data           /srv/data
      slots          3 of 8 in use
      queues         python 3 waiting, 3 running; other 0 waiting, 0 running

      component              pid  state
      redis                  801  ready
      runner                 802  ready, started again 2 times
      api                    803  ready
      worker                 803  ready
      (api, worker share a process)
      "
    `);
  });

  it("of one that is not ready, was updated, and has a paused program", () => {
    const [redis, runner, api] = running.components as [never, never, never];
    const gone = {
      name: "runner",
      process: "runner",
      state: "is not running: it ended with exit code 1",
      restarts: 3,
    };
    expect(
      statusText({
        ...running,
        status: "not_ready",
        background: false,
        installed: { version: "0.2.0", commit: "ffffffffffff" },
        components: [redis, { ...(runner as object), ...gone }, api],
        slots: { total: 8, running: 0, paused: 1 },
      }),
    ).toMatchInlineSnapshot(`
      "status         not ready: runner
      address        http://127.0.0.1:3112/v1 (no authentication, this machine only)
      running for    2 h 1 min, in the foreground, pid 800
      version        0.1.0 (commit 0123456789ab); installed: 0.2.0 (commit ffffffffffff)
      data           /srv/data
      slots          0 of 8 in use, 1 paused
      queues         python 3 waiting, 3 running; other 0 waiting, 0 running

      component              pid  state
      redis                  801  ready
      runner                 802  is not running: it ended with exit code 1, started again 3 times
      api                    803  ready
      (api share a process)
      "
    `);
  });

  it("of one whose metrics are closed", () => {
    const { slots: _, queues: __, ...rest } = running;
    expect(statusText({ ...rest, metrics_problem: "SVC_METRICS_TOKEN is set there" })).toContain(
      "slots, queues  not known: SVC_METRICS_TOKEN is set there\n",
    );
  });

  it("of one that does not run", () => {
    const none = { status: "not_running", data_dir: "/srv/data", installed: running.installed } as const;
    expect(statusText(none)).toBe("Not running on /srv/data (./svc up -d starts it).\n");
  });
});

describe("duration", () => {
  it.each([
    [0, "0 s"],
    [59, "59 s"],
    [60, "1 min"],
    [7265, "2 h 1 min"],
    [7201, "2 h"],
    [200_000, "2 d 7 h"],
  ])("%i s is %s", (seconds, text) => expect(duration(seconds)).toBe(text));
});

describe("numbers of a scrape", () => {
  const scrape = `# HELP svc_queue_jobs Jobs in the queues by state.
# TYPE svc_queue_jobs gauge
svc_queue_jobs{queue="python",state="waiting"} 4
svc_queue_jobs{queue="python",state="active"} 1
svc_queue_jobs{queue="other",state="delayed"} 2
svc_queue_jobs_other{queue="python",state="waiting"} 9
svc_sandbox_active_executions{state="running"} 3
svc_sandbox_active_executions{state="paused"} 1
`;
  it("are the queues' and the slots'", () => {
    expect(queuesOf(scrape)).toEqual({
      python: { waiting: 4, active: 1, delayed: 0 },
      other: { waiting: 0, active: 0, delayed: 2 },
    });
    expect(programsOf(scrape)).toEqual({ running: 3, paused: 1 });
  });

  it("are absent where there are none", () => {
    expect([queuesOf(""), programsOf("")]).toEqual([{}, undefined]);
  });
});
