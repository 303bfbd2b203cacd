/** For each alert of deploy/monitoring series that it fires for, and almost the same that it does not fire for. */
import type { InputSeries } from "./rule-tests.ts";

export interface AlertCase {
  fires: readonly InputSeries[];
  quiet: readonly InputSeries[];
  /** When it is asked. */
  at: string;
  labels: Readonly<Record<string, string>>;
  summary: string;
  /** What fires where there are no series at all. */
  absent?: readonly { labels: Readonly<Record<string, string>>; summary: string }[];
}

const of = (values: Readonly<Record<string, string>>): InputSeries[] =>
  Object.entries(values).map(([series, each]) => ({ series, values: each }));

/** Of jobs a minute, how many waited for up to 5 s; the others waited up to 10 s. */
const waits = (few: number, all: number) =>
  of({
    'svc_queue_wait_seconds_bucket{queue="python-queue",le="5"}': `0+${few}x30`,
    'svc_queue_wait_seconds_bucket{queue="python-queue",le="10"}': `0+${all}x30`,
    'svc_queue_wait_seconds_bucket{queue="python-queue",le="+Inf"}': `0+${all}x30`,
  });

/** Routes that no caller asks: those of probes and of Prometheus. */
const OPERATIONS = ["/v1/health", "/v1/health/detailed", "/v1/ready", "/v1/metrics", "/metrics"];

/** `probed`: the status of many more requests that are no caller's. */
const answers = (failed: number, all: number, probed: number) =>
  of({
    'svc_http_requests_total{component="api",route="/v1/exec",status="200"}': `0+${all - failed}x30`,
    'svc_http_requests_total{component="api",route="/v1/exec",status="503"}': `0+${failed}x30`,
    ...Object.fromEntries(
      OPERATIONS.map((route) => [
        `svc_http_requests_total{component="api",route="${route}",status="${probed}"}`,
        "0+1000x30",
      ]),
    ),
    // Of another component.
    'svc_http_requests_total{component="file-server",status="500"}': "0+100x30",
  });

const space = (available: number) =>
  of({
    'node_filesystem_avail_bytes{instance="host",mountpoint="/",fstype="ext4"}': `${available}x30`,
    'node_filesystem_size_bytes{instance="host",mountpoint="/",fstype="ext4"}': "100x30",
    'node_filesystem_avail_bytes{instance="host",mountpoint="/run",fstype="tmpfs"}': "0x30",
    'node_filesystem_size_bytes{instance="host",mountpoint="/run",fstype="tmpfs"}': "100x30",
  });

/** Valid from the beginning on, for so many minutes. */
const certificate = (minutes: number) =>
  of({
    'svc_tls_certificate_begin_timestamp_seconds{component="worker",instance="host:3115"}': "0x90",
    'svc_tls_certificate_expiry_timestamp_seconds{component="worker",instance="host:3115"}': `${minutes * 60}x90`,
  });

const RUNNER = 'instance="host:2000"';

export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
  SvcComponentDown: {
    fires: of({ 'up{job="svc",component="api",instance="host:3112"}': "1 0x10" }),
    // It answers again before a minute is over, and what is down is not ours.
    quiet: of({
      'up{job="svc",component="api",instance="host:3112"}': "1 1 0 1x10",
      'up{job="node"}': "0x10",
    }),
    at: "3m",
    labels: { severity: "critical", job: "svc", component: "api", instance: "host:3112" },
    summary: "api at host:3112 does not answer",
  },
  SvcNoWorker: {
    fires: of({
      'svc_worker_running{worker_type="python",instance="a"}': "0x10",
      'svc_worker_running{worker_type="python",instance="b"}': "0x10",
      'svc_worker_running{worker_type="other",instance="a"}': "1x10",
    }),
    quiet: of({
      'svc_worker_running{worker_type="python",instance="a"}': "0x10",
      'svc_worker_running{worker_type="python",instance="b"}': "1x10",
      'svc_worker_running{worker_type="other",instance="a"}': "1x10",
    }),
    at: "3m",
    labels: { severity: "critical", worker_type: "python" },
    summary: "no worker serves the queue of python",
    absent: ["python", "other"].map((worker_type) => ({
      labels: { severity: "critical", worker_type },
      summary: `no worker serves the queue of ${worker_type}`,
    })),
  },
  SvcCanaryStale: {
    fires: of({ svc_canary_last_success_timestamp_seconds: "0x10" }),
    // Of two workers one goes on.
    quiet: of({
      'svc_canary_last_success_timestamp_seconds{instance="a"}': "0x10",
      'svc_canary_last_success_timestamp_seconds{instance="b"}': "0+60x10",
    }),
    at: "5m",
    labels: { severity: "critical" },
    summary: "no program has gone the whole way for 5m 0s",
    absent: [{ labels: { severity: "critical" }, summary: "no program has gone the whole way for 5m 0s" }],
  },
  SvcApiErrors: {
    fires: answers(6, 100, 200),
    quiet: answers(4, 100, 503),
    at: "15m",
    labels: { severity: "critical" },
    summary: "6% of the API's answers to callers are errors of the service",
  },
  SvcQueueWait: {
    fires: waits(50, 100),
    quiet: waits(96, 100),
    at: "15m",
    labels: { severity: "warning", queue: "python-queue" },
    summary: "jobs of python-queue wait 9.5s (95th percentile)",
  },
  SvcNoFreeSlot: {
    fires: of({
      'svc_sandbox_slots{state="free",instance="a"}': "0x30",
      'svc_sandbox_slots{state="busy",instance="a"}': "8x30",
    }),
    quiet: of({
      'svc_sandbox_slots{state="free",instance="a"}': "0x30",
      'svc_sandbox_slots{state="free",instance="b"}': "1x30",
    }),
    at: "15m",
    labels: { severity: "warning" },
    summary: "all slots have been busy for ten minutes",
  },
  SvcRunsFail: {
    fires: of({
      [`svc_sandbox_executions_total{${RUNNER},outcome="execution_error"}`]: "0+1x30",
      [`svc_sandbox_executions_total{${RUNNER},outcome="manifest_error"}`]: "0x30",
    }),
    // Three of them in all; other outcomes are the programs' own.
    quiet: of({
      [`svc_sandbox_executions_total{${RUNNER},outcome="execution_error"}`]: "0x8 3x30",
      [`svc_sandbox_executions_total{${RUNNER},outcome="program_error"}`]: "0+9x30",
    }),
    at: "11m",
    labels: { severity: "critical", instance: "host:2000" },
    summary: "runs fail on the runner host:2000, whatever the program",
  },
  SvcJailsLate: {
    fires: of({ [`svc_sandbox_jail_setup_gate_watchdog_fires_total{${RUNNER}}`]: "0x8 1x30" }),
    // It was long ago.
    quiet: of({ [`svc_sandbox_jail_setup_gate_watchdog_fires_total{${RUNNER}}`]: "0 1x30" }),
    at: "12m",
    labels: { severity: "warning", instance: "host:2000" },
    summary: "jails of the runner host:2000 are not ready in time",
  },
  SvcPausedProgramsEvicted: {
    fires: of({ [`svc_ptc_live_evictions_total{${RUNNER},cause="memory"}`]: "0x8 1x30" }),
    quiet: of({ [`svc_ptc_live_evictions_total{${RUNNER},cause="timeout"}`]: "0x8 1x30" }),
    at: "12m",
    labels: { severity: "warning", instance: "host:2000" },
    summary: "the runner host:2000 gives up paused programs, because memory is short",
  },
  SvcAuthFailures: {
    fires: of({ 'svc_auth_failures_total{reason="bad_key"}': "0+120x30" }),
    quiet: of({ 'svc_auth_failures_total{reason="bad_key"}': "0+54x30" }),
    at: "15m",
    labels: { severity: "warning", reason: "bad_key" },
    summary: "2 requests a second are refused with 401: bad_key",
  },
  SvcLedgerConflicts: {
    fires: of({
      'svc_egress_ledger_conflicts_total{instance="a"}': "0+60x30",
      'svc_egress_ledger_conflicts_total{instance="b"}': "0+60x30",
    }),
    quiet: of({ 'svc_egress_ledger_conflicts_total{instance="a"}': "0+54x30" }),
    at: "20m",
    labels: { severity: "warning" },
    summary: "gateways overtake each other's changes of grants, 2 times a second",
  },
  SvcCertificateExpires: {
    fires: certificate(60),
    quiet: certificate(80),
    at: "54m",
    labels: { severity: "critical", component: "worker", instance: "host:3115" },
    summary: "the certificate of worker at host:3115 has 10% of its life left",
  },
  SvcDiskNearlyFull: {
    fires: space(8),
    quiet: space(12),
    at: "10m",
    labels: { severity: "critical", instance: "host", mountpoint: "/" },
    summary: "/ of host has 8% left",
  },
};
