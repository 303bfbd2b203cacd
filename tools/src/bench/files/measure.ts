/**
 * The file path: 20 MiB up and down through the public API, and through a bare server in the same rounds. Both have the
 * same client. It prepares its bodies beforehand and only counts the bytes it receives; that they are right is checked
 * before.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { PrivateCopy } from "@svc/test-kit/system/private-copy";
import { cpuOfComponents, cpuOfProcess } from "../accounting.ts";
import { startBareServer } from "../bare-process.ts";
import { LoadClient, uploadForm } from "../load-client.ts";
import { timed } from "../measure.ts";
import { round, type Summary } from "../statistics.ts";
import { byThemselves, type Case } from "../turns.ts";

const BARE = new URL("./bare-server.ts", import.meta.url);
const MIB = 2 ** 20;
const FILE_MIB = 20;
/** The components that a transfer keeps busy. */
const PATH = ["api", "file-server", "redis"] as const;
const CONTENT_TYPE = "application/octet-stream";

export interface FileRow {
  name: string;
  mib: number;
  ms: Summary;
  bareMs: Summary;
  /**
   * Processor milliseconds per MiB, of the processes on the path and of the bare server. The first is absent in results of
   * versions that counted only a part of it.
   */
  cpuPerMib?: number;
  bareCpuPerMib: number;
}

const WARM_UP = 5;

type Transfer = () => Promise<void>;

export async function measureFiles(
  copy: PrivateCopy,
  client: LoadClient,
  folder: string,
  n: number,
): Promise<FileRow[]> {
  const stored = join(folder, "bare-files");
  mkdirSync(stored);
  const server = await startBareServer(BARE, stored);
  const bareClient = new LoadClient(server.url);
  try {
    const ours = await transfers(client, "/upload", ourForm, ourPath);
    const bare = await transfers(bareClient, "/files", bareBody, barePath);
    const cpu = {
      ours: () => cpuOfComponents(copy.state(), PATH),
      bare: () => cpuOfProcess(server.pid),
    };
    const rows: FileRow[] = [];
    for (const name of ["upload", "download"] as const) {
      const cases: Case[] = [
        { name: "ours", n, warmUp: WARM_UP, sample: () => timed(ours[name]) },
        { name: "bare", n, warmUp: WARM_UP, sample: () => timed(bare[name]) },
      ];
      const summaries = await byThemselves([{ cases, alternates: true }], () => undefined);
      rows.push({
        name: `${name} ${FILE_MIB} MiB`,
        mib: FILE_MIB,
        ms: summaries.get("ours") as Summary,
        bareMs: summaries.get("bare") as Summary,
        cpuPerMib: await cpuPerMib(cpu.ours, ours[name], n),
        bareCpuPerMib: await cpuPerMib(cpu.bare, bare[name], n),
      });
    }
    return rows;
  } finally {
    bareClient.close();
    await server.stop();
  }
}

interface Body {
  type: string;
  body: Buffer;
}

const ourForm = (content: Buffer): Body => uploadForm([{ name: "data.bin", content }]);
const bareBody = (content: Buffer): Body => ({ type: CONTENT_TYPE, body: content });
const ourPath = (answer: { storage_session_id: string; files: { id: string }[] }) =>
  `/download/${answer.storage_session_id}/${answer.files[0]?.id}`;
const barePath = (answer: { id: string }) => `/files/${answer.id}`;

/** The two transfers of one server. Checks first, with one of each, that the bytes come back. */
async function transfers<T>(
  client: LoadClient,
  uploadPath: string,
  bodyOf: (content: Buffer) => Body,
  downloadPath: (answer: T) => string,
): Promise<Record<"upload" | "download", Transfer>> {
  const content = randomBytes(FILE_MIB * MIB);
  const { type, body } = bodyOf(content);
  const send = async (): Promise<Buffer> => {
    const answer = await client.send("POST", uploadPath, type, body);
    if (answer.status !== 200) throw new Error(`upload: ${answer.status} ${answer.body.toString()}`);
    return answer.body;
  };
  const path = downloadPath(JSON.parse((await send()).toString()) as T);
  const first = await client.send("GET", path);
  if (!content.equals(first.body)) throw new Error("other bytes came back");
  return {
    upload: async () => void (await send()),
    download: async () => {
      if ((await client.drain(path)) !== content.length) throw new Error("bytes are missing");
    },
  };
}

async function cpuPerMib(cpuMs: () => number, transfer: Transfer, n: number): Promise<number> {
  const before = cpuMs();
  for (let count = 0; count < n; count++) await transfer();
  return round((cpuMs() - before) / (n * FILE_MIB));
}
