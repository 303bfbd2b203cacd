/** Inputs whose bytes break off: whether storage is away or the object is damaged is asked for. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { CHECKED_HEADER, type ErrorCode, errorBody, ServiceError } from "@svc/contracts";
import { GatewayClient, type RunGateway } from "@svc/runner/gateway";
import { InputSource } from "@svc/runner/inputs/source";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

const CONTENT = Buffer.alloc(100_000, "abc");
const ETAG = createHash("sha256").update(CONTENT).digest("hex");

/** What is said of the object once all of it was checked; undefined: it is whole. */
let finding: ErrorCode | undefined;
let checked: number;
let isAway: boolean;

function send(response: ServerResponse, isChecked: boolean): void {
  if (isChecked && finding !== undefined) {
    const refusal = new ServiceError(finding);
    const headers = { "content-type": "application/json" };
    response.writeHead(refusal.status, headers).end(JSON.stringify(errorBody(refusal, "r")));
    return;
  }
  response.writeHead(200, { etag: `"${ETAG}"`, "content-length": CONTENT.length });
  if (isAway) response.write(CONTENT.subarray(0, 50_000), () => response.destroy());
  else response.end(CONTENT);
}

const server = createServer((request, response) => {
  const isChecked = request.headers[CHECKED_HEADER] === "true";
  if (isChecked) checked++;
  send(response, isChecked);
});
let gateway: GatewayClient;
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  gateway = new GatewayClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
beforeEach(() => {
  [finding, checked, isAway] = [undefined, 0, true];
});
afterAll(async () => {
  await gateway.close();
  server.close();
});

const run: RunGateway = { grant: "grant", requestId: "request", signal: new AbortController().signal };
const FILE = { id: "f", storage_session_id: "s", name: "a.bin", at: 1 };
const open = () =>
  new InputSource(gateway, undefined, { askedForCopy: () => undefined }).open(run, FILE, false);
const read = async () => buffer((await open()).bytes);

it.each<[ErrorCode | undefined, ErrorCode]>([
  [undefined, "storage_unavailable"],
  ["storage_unavailable", "storage_unavailable"],
  ["internal_error", "input_unavailable"],
  ["file_not_found", "input_unavailable"],
  ["unauthorized", "storage_unavailable"],
  ["egress_grant_refused", "storage_unavailable"],
  ["egress_ledger_refused", "storage_unavailable"],
  ["not_found", "storage_unavailable"],
  ["rate_limited", "storage_unavailable"],
  ["upstream_unavailable", "storage_unavailable"],
])("that are found %s are told as %s", async (found, code) => {
  finding = found;
  await expect(read()).rejects.toMatchObject({ code, details: [{ path: "files[1].name" }] });
  expect(checked).toBeGreaterThan(0);
});

it("are not asked for again when their reader left", async () => {
  const input = await open();
  const reading = buffer(input.bytes);
  input.close();
  await expect(reading).rejects.toThrow("closed");
  expect(checked).toBe(0);
});

it("that are whole are read once", async () => {
  isAway = false;
  expect(await read()).toEqual(CONTENT);
  expect(checked).toBe(0);
});
