/** Files as LibreChat handles them: attached, carried from call to call, changed, removed, looked up, downloaded. */
import { fetchSessionFiles } from "@librechat/agents";
import { Api, metadataPath } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Conversation } from "./support/conversation.ts";

let system: Service;
let api: Api;

beforeAll(async () => {
  system = await startService(OPEN_LIMITS);
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const talk = () => new Conversation({ url: system.url });
const summary = (files: number, images = 0) =>
  `Session files: ${files} persisted file(s) are available in /mnt/data, including ${images} image(s).`;

test("what one tool writes every other finds in the next call, and unchanged files keep their ids", async () => {
  const chat = talk();
  const first = await chat.python(
    "open('/mnt/data/a.txt', 'w').write('one')\nopen('b.csv', 'w').write('x,y')",
  );
  expect(first.text).toContain(summary(2));
  const [a, b] = [chat.file("a.txt"), chat.file("b.csv")];

  const second = await chat.bash("cat a.txt b.csv; mkdir -p deep/er; echo two > deep/er/c.txt");
  expect(second.text).toMatch(/^stdout:\nonex,y\n/);
  expect(second.text).toContain(summary(1));
  expect([chat.file("a.txt"), chat.file("b.csv")]).toMatchObject([
    { id: a.id, storage_session_id: a.storage_session_id, inherited: true },
    { id: b.id, storage_session_id: b.storage_session_id, inherited: true },
  ]);
  const third = await chat.code("js", "console.log(require('fs').readFileSync('deep/er/c.txt', 'utf8'))");
  expect(third.text.trim()).toBe("stdout:\ntwo");
  expect(chat.files.map(({ name }) => name).sort()).toEqual(["a.txt", "b.csv", "deep/er/c.txt"]);
});

test("a changed file gets a new id and points to the old one, which stays readable", async () => {
  const chat = talk();
  await chat.bash("echo one > log.txt");
  const before = chat.file("log.txt");
  const reply = await chat.bash("echo two >> log.txt");
  expect(reply.text).toContain(summary(1));
  const after = chat.file("log.txt");
  expect(after.id).not.toBe(before.id);
  expect(after.modified_from).toEqual({ id: before.id, storage_session_id: before.storage_session_id });
  expect((await chat.bash("cat log.txt")).text).toBe("stdout:\none\ntwo");
  expect((await api.bytes(before)).toString()).toBe("one\n");
  expect((await api.bytes(after)).toString()).toBe("one\ntwo\n");
});

test("removed and renamed files leave the conversation", async () => {
  const chat = talk();
  await chat.bash("touch old.txt gone.txt stays.txt");
  const reply = await chat.bash("mv old.txt new.txt; rm gone.txt");
  expect(reply.artifact.deleted_files?.sort()).toEqual(["gone.txt", "old.txt"]);
  expect(chat.files.map(({ name }) => name).sort()).toEqual(["new.txt", "stays.txt"]);
  expect((await chat.bash("ls *.txt")).text).toBe("stdout:\nnew.txt\nstays.txt");
});

test("a failing program's files are kept", async () => {
  const chat = talk();
  const reply = await chat.python("open('half.txt', 'w').write('half')\nraise SystemExit(3)");
  expect(reply).toMatchObject({ failed: false, artifact: { files: [{ name: "half.txt" }] } });
  expect((await chat.bash("cat half.txt")).text).toBe("stdout:\nhalf");
});

test("attached files of a user, an agent and a skill keep whose they are through changes and echoes", async () => {
  const chat = talk();
  chat.attach(await api.upload({ "übung.csv": "a;b\n1;2\n" }, { kind: "user", id: "someone" }));
  const agent = { kind: "agent", resource_id: "agent_1-x" } as const;
  chat.attach(await api.upload({ "notes.md": "notes" }, { kind: "agent", id: agent.resource_id }), agent);
  const skill = { kind: "skill", resource_id: "665f00aa11bb22cc33dd44ee", version: 7 } as const;
  const form = { kind: "skill", id: skill.resource_id, version: "7", read_only: "true" };
  chat.attach(await api.upload({ "pdf/SKILL.md": "how to" }, form), skill);
  const attached = [...chat.files];

  const first = await chat.bash(
    "cat übung.csv notes.md pdf/SKILL.md; echo 3\\;4 >> übung.csv; echo more >> notes.md",
  );
  expect(first.text).toContain("stdout:\na;b\n1;2\nnoteshow to\n");
  expect(first.text).toContain(summary(2));
  expect(chat.file("übung.csv").modified_from?.id).toBe(attached[0]?.id);
  expect(chat.file("notes.md").modified_from?.id).toBe(attached[1]?.id);
  expect(chat.file("pdf/SKILL.md")).toMatchObject({ ...attached[2], inherited: true });

  const second = await chat.python(
    "import os\nprint(open('übung.csv').read(), os.access('pdf/SKILL.md', os.W_OK))",
  );
  expect(second.text.trim()).toBe("stdout:\na;b\n1;2\n3;4\n False");
  expect(second.failed).toBe(false);
});

test("a file that is gone refuses the call as not allowed, without a word of why", async () => {
  const chat = talk();
  await chat.bash("echo x > x.txt");
  const { id, storage_session_id } = chat.file("x.txt");
  expect((await api.send("DELETE", `/files/${storage_session_id}/${id}?kind=user&id=someone`)).status).toBe(
    200,
  );
  const reply = await chat.bash("cat /mnt/data/x.txt");
  expect(reply.failed).toBe(true);
  expect(reply.text).toContain("Code execution is not authorized. Verify access before trying again.");
});

test("hosts list, check and download what a program made with the ids that the client got", async () => {
  const chat = talk();
  const started = Date.now();
  await chat.bash("printf %s hello > greeting.txt; printf %s x > 'weird name (1).bin'");
  const file = chat.file("greeting.txt");
  const listed = await fetchSessionFiles(
    system.url,
    file.storage_session_id,
    { kind: "user", id: "u" },
    async () => ({}),
  );
  expect(listed.map(({ id, name, storage_session_id }) => ({ id, name, storage_session_id }))).toEqual(
    expect.arrayContaining(
      chat.files.map(({ id, name, storage_session_id }) => ({ id, name, storage_session_id })),
    ),
  );
  expect(listed.length).toBe(2);

  const query = "?kind=user&id=someone";
  const metadata = (await api.send("GET", `${metadataPath(file)}${query}`)).ok<{ lastModified: string }>();
  const modified = Date.parse(metadata.lastModified);
  expect(modified).toBeGreaterThan(started - 1000);
  expect(modified).toBeLessThan(Date.now() + 1000);
  const download = await api.download(file, { "user-agent": "LibreChat/1.0" }, query);
  expect(download.text).toBe("hello");
});
