/** A program as requests that can be copied: curl, and this project's clients. Pure. */

export interface Asked {
  language: string;
  code: string;
  /** Uploaded files that the run gets. */
  files?: readonly { id: string; storage_session_id: string; name: string }[];
  session?: string;
}

export interface Place {
  /** Address of the service. */
  url: string;
  hasToken: boolean;
}

const inShell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

export function asCurl({ language, code, files = [], session }: Asked, { url, hasToken }: Place): string {
  const body = {
    language,
    code,
    ...(files.length === 0 ? {} : { files: files.map(refOf) }),
    ...(session === undefined ? {} : { runtime_session_hint: session }),
  };
  const token = hasToken ? ` \\\n  -H "Authorization: Bearer $SVC_TOKEN"` : "";
  return `curl -s ${url}/v1/exec -H 'Content-Type: application/json'${token} \\\n  -d ${inShell(JSON.stringify(body))}`;
}

export function asTypeScript(
  { language, code, files = [], session }: Asked,
  { url, hasToken }: Place,
): string {
  const options = [`baseUrl: ${JSON.stringify(url)}`, ...(hasToken ? ["token: process.env.SVC_TOKEN"] : [])];
  const fields = [
    `language: ${JSON.stringify(language)}`,
    `code: ${JSON.stringify(code)}`,
    ...(files.length === 0 ? [] : [`files: ${JSON.stringify(files.map(refOf))}`]),
    ...(session === undefined ? [] : [`runtime_session_hint: ${JSON.stringify(session)}`]),
  ];
  return `import { Svc } from "svc-client";

const svc = new Svc({ ${options.join(", ")} });
const result = await svc.run({
  ${fields.join(",\n  ")},
});
console.log(result.stdout);
`;
}

/** Uses JSON strings, which are also Python strings. */
export function asPython({ language, code, files = [], session }: Asked, { url, hasToken }: Place): string {
  const options = [JSON.stringify(url), ...(hasToken ? ['token=os.environ["SVC_TOKEN"]'] : [])];
  const fields = [
    JSON.stringify(code),
    `language=${JSON.stringify(language)}`,
    ...(files.length === 0 ? [] : [`files=${JSON.stringify(files.map(refOf))}`]),
    ...(session === undefined ? [] : [`session=${JSON.stringify(session)}`]),
  ];
  return `${hasToken ? "import os\n" : ""}from svc_client import Svc

svc = Svc(${options.join(", ")})
result = svc.run(
    ${fields.join(",\n    ")},
)
print(result.stdout)
`;
}

const refOf = ({ id, storage_session_id, name }: NonNullable<Asked["files"]>[number]) => ({
  id,
  storage_session_id,
  name,
});
