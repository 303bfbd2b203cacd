/** The file routes as a client sees them, and the parts of forms, for tests. */
import type { ErrorCode, UploadedFile } from "@svc/contracts";
import { expect } from "vitest";
import { type FileApi, FORM_TYPE, type FormPart, formBytes, USER_HEADER } from "./file-api.ts";

export interface Uploaded {
  message: string;
  storage_session_id: string;
  files: UploadedFile[];
}

export const file = (
  filename: string,
  body: Uint8Array | string = filename,
  type = "text/plain",
): FormPart => ({ filename, body, type });
export const field = (name: string, value: string): FormPart => ({ name, value });

/** `api` is asked at each call, so that a client can be made before its API is started. */
export function fileClient(api: () => FileApi) {
  const call = (path: string, init: RequestInit = {}) => fetch(`${api().url}/v1/${path}`, init);
  const post = (route: string, parts: readonly FormPart[]) =>
    call(route, { method: "POST", body: formBytes(parts), headers: { "content-type": FORM_TYPE } });
  const upload = async (...parts: FormPart[]): Promise<Uploaded> => {
    const answer = await post("upload", parts);
    expect(answer.status).toBe(200);
    return (await answer.json()) as Uploaded;
  };
  return { call, post, upload };
}

export const as = (user: string, init: RequestInit = {}) => ({
  ...init,
  headers: { ...init.headers, [USER_HEADER]: user },
});

/** Status and code of an error answer, whose body must have its form. */
export async function errorOf(answer: Response): Promise<[number, ErrorCode]> {
  const body = (await answer.json()) as { error: ErrorCode; message: string; request_id: string };
  expect(body.message).toMatch(/^\S.*\.$/s);
  expect(body.request_id).toBe(answer.headers.get("x-request-id"));
  return [answer.status, body.error];
}
