/** Reads files of API keys as the user of the first argument, and prints what came of each: `read`, or the problem. */
import { readApiKeysFile } from "@svc/service-kit/credentials/api-keys-file";

const [id, ...paths] = process.argv.slice(2);
process.setgroups?.([]);
process.setgid?.(Number(id));
process.setuid?.(Number(id));
const results = paths.map((path) =>
  readApiKeysFile(path).then(
    () => "read",
    (error: Error) => error.message.replaceAll(path, "it"),
  ),
);
process.stdout.write(JSON.stringify(await Promise.all(results)));
