/** A real file server in a process of its own for a test: any free port, a temporary directory, a given Redis. */
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSecret } from "../credentials/secrets.ts";
import { startComponent } from "./component.ts";

export const INTERNAL_TOKEN = newSecret();

export interface PrivateFileServer {
  url: string;
  pid: number;
  /** What it has logged since its last start. */
  lines: readonly string[];
  /** STORAGE_DIR of the server. */
  directory: string;
  /** Paths of all files in whatever state below the store. */
  storedFiles: () => Promise<string[]>;
  kill: () => Promise<void>;
  /** Starts the server again on the same port and directory. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
}

export async function startFileServer(
  redisUrl: string,
  env: Record<string, string> = {},
): Promise<PrivateFileServer> {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-files-"));
  const settings = {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    REDIS_URL: redisUrl,
    STORAGE_DRIVER: "fs",
    STORAGE_DIR: directory,
    FILE_SERVER_HOST: "127.0.0.1",
    FILE_SERVER_PORT: "0",
    ...env,
  };
  let running = await startComponent("file-server", settings);
  const { url } = running;
  const kill = () => running.kill();
  return {
    url,
    get pid() {
      return running.pid;
    },
    get lines() {
      return running.lines;
    },
    directory,
    storedFiles: () => filesBelow(directory),
    kill,
    restart: async () => {
      await kill();
      running = await startComponent("file-server", {
        ...settings,
        FILE_SERVER_PORT: new URL(url).port,
      });
    },
    stop: async () => {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Looks again when a folder vanishes while it is looked at. */
async function filesBelow(directory: string): Promise<string[]> {
  for (;;) {
    try {
      const entries = await readdir(directory, { recursive: true, withFileTypes: true });
      return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || !existsSync(directory)) throw error;
    }
  }
}
