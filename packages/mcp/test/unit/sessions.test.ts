import { type Service, ServiceRefusal } from "@svc/mcp/service";
import { listSessions } from "@svc/mcp/sessions";
import { expect, test } from "vitest";

const { signal } = new AbortController();

/** A service with two sessions; the files of the first are refused with this code. */
const refusing = (code: string | undefined) =>
  ({
    sessions: async () => [{ id: "first" }, { id: "second", hint: "b" }],
    sessionFiles: async (id: string) => {
      if (id === "first") throw new ServiceRefusal("It was refused.", code);
      return [{ name: "a.txt", size: 1 }];
    },
  }) as unknown as Service;

test.each(["file_not_found", "input_unavailable"])("a session refused with %s has no files", async (code) => {
  expect(await listSessions(refusing(code), signal)).toMatchObject([
    { id: "first", files: [] },
    { id: "second", files: [{ name: "a.txt" }] },
  ]);
});

test.each(["rate_limited", "connection_failed", "storage_unavailable", "unauthorized", undefined])(
  "a service that refuses with %s does not look like one whose sessions have no files",
  async (code) => {
    await expect(listSessions(refusing(code), signal)).rejects.toThrow("It was refused.");
  },
);
