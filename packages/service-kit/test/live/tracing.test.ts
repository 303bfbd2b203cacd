/** Tracing of one component, by itself: bounds of what waits, and what its log says of a receiver that is slow or away. */
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { OtlpReceiver, type ReceiverMode } from "@svc/test-kit/system/otlp-receiver";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ConfigError, loadConfig, startTracing, type Tracing } from "../../src/index.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` };
const ON = { OTEL_TRACING_ENABLED: "true", OTEL_BSP_SCHEDULE_DELAY: "20", OTEL_EXPORTER_OTLP_TIMEOUT: "300" };

let receiver: OtlpReceiver;
let lines: { msg: string; dropped?: number; reason?: string }[];
let tracing: Tracing | undefined;

beforeEach(async () => {
  receiver = new OtlpReceiver();
  await receiver.listen();
  lines = [];
  tracing = undefined;
});
afterEach(async () => {
  receiver.mode = "takes";
  await tracing?.close();
  await receiver.close().catch(() => undefined);
});

async function start(env: Record<string, string> = {}): Promise<Tracing> {
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const config = loadConfig("worker", {
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "of no use here",
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    ...ON,
    ...env,
  });
  tracing = await startTracing("worker", config, log);
  return tracing as Tracing;
}

const messages = () => lines.map(({ msg }) => msg);

it("is nothing at all where it is off", async () => {
  expect(await start({ OTEL_TRACING_ENABLED: "false" })).toBeUndefined();
});

it("a span, its stages, what was before it and its links arrive, of the component that was named", async () => {
  const { begin } = await start({ SERVICE_NAME: "worker-7", OTEL_EXPORTER_OTLP_COMPRESSION: "gzip" });
  const span = begin("run", "consumer", CALLER, { "svc.language": "py" });
  span.precededBy("wait", 1000);
  span.link({ traceparent: `00-${TRACE.replaceAll("4", "5")}-00f067aa0ba902b8-01` });
  span.link({ traceparent: "none" });
  span.link(undefined);
  span.stage("one");
  span.stage("two");
  span.end({ "svc.outcome": "success" }, true);
  span.end({ "svc.outcome": "again" });
  span.stage("late");
  await expect.poll(() => receiver.spans).toHaveLength(4);
  const [run, wait, one, two] = ["run", "wait", "one", "two"].map((name) =>
    receiver.spans.find((each) => each.name === name),
  );
  expect(run).toMatchObject({
    service: "worker-7",
    traceId: TRACE,
    parentSpanId: "00f067aa0ba902b7",
    kind: 5,
    attributes: { "svc.language": "py", "svc.outcome": "success" },
    links: [{ traceId: TRACE.replaceAll("4", "5"), spanId: "00f067aa0ba902b8" }],
    isError: true,
  });
  expect(wait).toMatchObject({ traceId: TRACE, parentSpanId: "00f067aa0ba902b7", endMs: run?.startMs });
  expect((run?.startMs ?? 0) - (wait?.startMs ?? 0)).toBeCloseTo(1000, 2);
  expect(one).toMatchObject({ parentSpanId: run?.spanId, isError: false, startMs: expect.any(Number) });
  expect(two).toMatchObject({
    parentSpanId: run?.spanId,
    isError: true,
    startMs: one?.endMs,
    endMs: run?.endMs,
  });
});

it("joins a trace that there is, and begins none", async () => {
  const { join } = await start();
  expect(join("run", "server", undefined)).toBeUndefined();
  expect(join("run", "server", {})).toBeUndefined();
  expect(join("run", "server", { traceparent: "00-0-0-01" })).toBeUndefined();
  expect(join("run", "server", { traceparent: [CALLER.traceparent, CALLER.traceparent] })).toBeUndefined();
  expect(join("run", "server", CALLER)?.context.traceparent).toMatch(new RegExp(`^00-${TRACE}-.{16}-01$`));
});

it("what cannot be delivered is dropped and told once, whatever comes after; the end does not wait for it", async () => {
  receiver.mode = "hangs";
  const { begin, close } = await start({
    OTEL_BSP_MAX_QUEUE_SIZE: "10",
    OTEL_EXPORTER_OTLP_TIMEOUT: "60000",
  });
  for (let n = 0; n < 1000; n++) begin("run", "server", {}).end();
  expect(lines).toMatchObject([{ msg: "spans were dropped", dropped: 1, reason: "too many wait" }]);
  await expect.poll(() => receiver.requests).toBe(1);
  const before = performance.now();
  await close();
  // It waits for 2 s, and the receiver could take a minute.
  expect(performance.now() - before).toBeLessThan(30_000);
  expect(lines.slice(1)).toMatchObject([
    { msg: "spans were dropped", dropped: 1000, reason: "the component stopped" },
  ]);
});

it.each<[ReceiverMode | "away", string]>([
  ["refuses", "the receiver answered 400"],
  ["hangs", "the receiver did not take them in time"],
  ["away", "ECONNREFUSED"],
])("a receiver that %s: the log says so once, and when spans are taken again", async (mode, reason) => {
  const { port } = receiver;
  const { begin } = await start();
  if (mode === "away") await receiver.close();
  else receiver.mode = mode;
  for (let n = 0; n < 3; n++) {
    begin("lost", "server", {}).end();
    if (n === 0) await expect.poll(messages).toEqual(["spans were dropped"]);
  }
  expect(lines[0]).toMatchObject({ dropped: 1, reason });
  if (mode === "away") await receiver.listen(port);
  receiver.mode = "takes";
  const again = async () => {
    begin("taken", "server", {}).end();
    await expect.poll(() => receiver.spans.map(({ name }) => name)).toContain("taken");
  };
  await again();
  await expect.poll(messages).toContain("spans are exported again");
});

it("the end sends what waits", async () => {
  const { begin, close } = await start({ OTEL_BSP_SCHEDULE_DELAY: "86400000" });
  begin("last", "server", {}).end();
  expect(receiver.spans).toEqual([]);
  await close();
  expect(receiver.spans.map(({ name }) => name)).toEqual(["last"]);
  expect(lines).toEqual([]);
});

it("keeps the share of traces that was asked for", async () => {
  const { begin, close } = await start({
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.5",
  });
  for (let n = 0; n < 400; n++) begin("run", "server", {}).end();
  await close();
  expect(Math.abs(receiver.spans.length - 200)).toBeLessThan(100);
});

it.each([
  ["OTEL_EXPORTER_OTLP_HEADERS", "authorization"],
  ["OTEL_RESOURCE_ATTRIBUTES", "a=%zz"],
])("%s that is no list of pairs is refused, and not shown", async (name, value) => {
  const refusal = await start({ [name]: value }).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ConfigError);
  expect(String(refusal)).toContain(`${name} must be a comma list of name=value`);
  expect(String(refusal)).not.toContain(value);
});
