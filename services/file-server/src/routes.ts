/**
 * The routes of objects and sessions: parse, call, reply. Each requires the internal token of a component that uses it. Only the API may use the
 * routes of uploads and deletions, only the gateway those of programs' inputs and outputs; both may read.
 */
import {
  batchRequestSchema,
  CHECKED_HEADER,
  commitSessionSchema,
  encodeInputBatch,
  fileDetailSchema,
  INPUT_BATCH_TYPE,
} from "@svc/contracts";
import {
  type Component,
  type Config,
  type HttpServer,
  requireInternalToken,
  tokensFrom,
} from "@svc/service-kit";
import { z } from "zod";
import { readBatch } from "./batch.ts";
import { fileMetadata } from "./descriptions.ts";
import { sendObject } from "./download.ts";
import {
  accountIn,
  addressOf,
  attributesIn,
  checkNamespace,
  namespaceIn,
  pendingAttributesIn,
  sessionOf,
} from "./inner-headers.ts";
import type { Objects } from "./objects.ts";
import { withBody } from "./upload.ts";

const listQuerySchema = z.object({ detail: fileDetailSchema.default("simple") });

type NameBounds = Parameters<typeof attributesIn>[1];

export async function objectRoutes(app: HttpServer, config: Config, objects: Objects): Promise<void> {
  const names = {
    maxLength: Math.max(config.SANDBOX_MAX_PATH_LENGTH, config.EGRESS_GATEWAY_MAX_PATH_LENGTH),
    maxDepth: Math.max(config.SANDBOX_MAX_NESTING_DEPTH, config.EGRESS_GATEWAY_MAX_NESTING_DEPTH),
  };
  const openTo = (callers: readonly Component[], routes: typeof uploadRoutes) =>
    app.register(async (own) => {
      own.addHook("onRequest", requireInternalToken(tokensFrom(config, "file-server", callers)));
      routes(own, objects, names);
    });
  openTo(["api", "egress-gateway"], readRoutes);
  openTo(["api"], uploadRoutes);
  openTo(["egress-gateway"], inputRoutes);
  openTo(["egress-gateway"], outputRoutes);
}

function readRoutes(app: HttpServer, objects: Objects): void {
  app.route({
    method: ["GET", "HEAD"],
    url: "/sessions/:sid/objects/:fid",
    handler: async (request, reply) => {
      const { headers, params } = request;
      const [address, namespace] = [addressOf(params), namespaceIn(headers)];
      if (headers[CHECKED_HEADER] === "true") await objects.verify(address, namespace);
      return sendObject(await objects.open(address, namespace), request, reply);
    },
  });
  app.get("/sessions/:sid/objects", { schema: { querystring: listQuerySchema } }, async (request) =>
    objects.list(sessionOf(request.params), namespaceIn(request.headers), request.query.detail),
  );
}

/** Files of users, from their upload to their deletion. */
function uploadRoutes(app: HttpServer, objects: Objects, names: NameBounds): void {
  app.get("/sessions/:sid/objects/:fid/metadata", async (request) => {
    const object = await objects.open(addressOf(request.params), namespaceIn(request.headers));
    await object.close();
    return fileMetadata(object.record);
  });
  app.get("/sessions/:sid/objects/:fid/record", async (request) => {
    const object = await objects.open(addressOf(request.params), namespaceIn(request.headers));
    await object.close();
    return object.record;
  });
  app.delete("/sessions/:sid/objects/:fid", async (request) => {
    const address = addressOf(request.params);
    await objects.delete(address, namespaceIn(request.headers));
    return { message: "File deleted successfully", session_id: address.session, fileId: address.file };
  });
  app.post("/sessions/:sid/commit", { schema: { body: commitSessionSchema } }, async (request) => {
    const { namespace, account = namespace } = request.body;
    for (const name of [namespace, account]) checkNamespace(name);
    return { files: await objects.commit(sessionOf(request.params), request.body) };
  });
  app.get("/usage", async ({ headers }) => ({
    quotas: await objects.usage(checkNamespace(accountIn(headers) ?? "")),
  }));
  app.delete("/sessions/:sid/pending", async (request) => {
    await objects.discard(sessionOf(request.params), accountIn(request.headers));
    return { message: "Pending files discarded" };
  });
  app.register(async (raw) => {
    takeAnyBody(raw);
    raw.put("/sessions/:sid/pending/:fid", async (request) => {
      const address = addressOf(request.params);
      const attributes = pendingAttributesIn(request.headers, names);
      const account = accountIn(request.headers);
      return withBody(request, (content) => objects.stage(address, content, attributes, account));
    });
  });
}

/** Several inputs of a program at once. */
function inputRoutes(app: HttpServer, objects: Objects): void {
  app.post("/inputs", { schema: { body: batchRequestSchema } }, async ({ body }, reply) => {
    for (const { storage_session_id: sid, id: fid } of body.files) addressOf({ sid, fid });
    for (const sid of body.directories) sessionOf({ sid });
    reply.type(INPUT_BATCH_TYPE);
    return encodeInputBatch(await readBatch(objects, body));
  });
}

function outputRoutes(app: HttpServer, objects: Objects, names: NameBounds): void {
  takeAnyBody(app);
  app.put("/sessions/:sid/objects/:fid", async (request) => {
    const address = addressOf(request.params);
    const attributes = attributesIn(request.headers, names);
    return withBody(request, (content) => objects.put(address, content, attributes));
  });
}

function takeAnyBody(app: HttpServer): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
}
