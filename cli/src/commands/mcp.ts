/** `./svc mcp`: an MCP server on standard input and output, started by an MCP host. Only protocol messages may go to standard output. */
import { credentialsOf } from "../client.ts";
import { defineCommand } from "../command.ts";
import { INSTANCE_OPTIONS } from "../instance.ts";
import { meantAddress, whenUnreachable } from "../meant-address.ts";
import { serviceAddress } from "../service-address.ts";
import { versionOf } from "../version.ts";

export const mcp = defineCommand({
  usage: "mcp [--url URL] [--token TOKEN]",
  summary: "Offers the service to a host of the Model Context Protocol, on standard input and output.",
  details: `
The host starts it and ends it by closing its standard input; see docs/mcp.md for the settings of usual hosts.

Examples:
  claude mcp add svc -- ./svc mcp
  SVC_TOKEN=… ./svc mcp --url https://code.example.com`,
  options: {
    url: { value: "URL", doc: "Address of the service; default: the copy on this machine." },
    token: {
      value: "TOKEN",
      doc: "JWT or API key for a service that wants one (SVC_TOKEN, which others cannot see).",
    },
    ...INSTANCE_OPTIONS,
  },
  run: async ({ values }) => {
    const baseUrl = serviceAddress(meantAddress(values));
    const headers = credentialsOf(values.token ?? (process.env.SVC_TOKEN || undefined));
    const [{ serveStdio }, { httpService }] = await Promise.all([
      import("@svc/mcp/stdio"),
      import("@svc/mcp/http-service"),
    ]);
    await serveStdio({
      service: httpService({ baseUrl, headers, whenUnreachable: whenUnreachable(values) }),
      version: versionOf().version,
      onError: (error) => process.stderr.write(`svc: ${error instanceof Error ? error.message : error}\n`),
    });
    return 0;
  },
});
