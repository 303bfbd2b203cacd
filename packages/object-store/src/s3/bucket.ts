/** The operations on the keys of one bucket from which the store is built. Failures are StoreErrors. */
import type { Readable } from "node:stream";
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { ByteRange } from "../store.ts";
import { StoreError } from "../store.ts";
import { createClient, LONG, type S3Connection, SHORT, within } from "./client.ts";
import { s3Call, statusOf } from "./errors.ts";

export interface Listed {
  key: string;
  size: number;
  modified: Date;
}

export interface OpenUpload {
  key: string;
  uploadId: string;
  begun: Date;
}

const HTTP_CONFLICT = 409;
const HTTP_PRECONDITION_FAILED = 412;
/** A conditional write that races with a deletion of its key gets a conflict (409), and is tried again. */
const CREATE_ATTEMPTS = 4;

export class Bucket {
  readonly client: S3Client;
  readonly name: string;

  constructor(connection: S3Connection) {
    this.client = createClient(connection);
    this.name = connection.bucket;
  }

  /** Stores a small object unless its key is taken. After a failure the object may exist nevertheless. */
  async create(key: string, body: string): Promise<"created" | "taken"> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.client.send(
          new PutObjectCommand({ Bucket: this.name, Key: key, Body: Buffer.from(body), IfNoneMatch: "*" }),
          within(SHORT),
        );
        return "created";
      } catch (error) {
        const status = statusOf(error);
        if (status === HTTP_PRECONDITION_FAILED) return "taken";
        if (status === HTTP_CONFLICT && attempt < CREATE_ATTEMPTS) continue;
        return s3Call("creating an object", () => Promise.reject(error));
      }
    }
  }

  /** Stores an object, and replaces an existing one. */
  async put(key: string, body: Uint8Array): Promise<void> {
    const input = { Bucket: this.name, Key: key, Body: body };
    await s3Call("storing an object", () => this.client.send(new PutObjectCommand(input), within(LONG)));
  }

  /** A small object as text. */
  async text(key: string): Promise<{ text: string; modified: Date }> {
    return s3Call("reading an object", async () => {
      const input = { Bucket: this.name, Key: key };
      const { Body, LastModified } = await this.client.send(new GetObjectCommand(input), within(SHORT));
      if (Body === undefined || LastModified === undefined) throw new Error("the answer is not complete");
      return { text: await Body.transformToString("utf8"), modified: LastModified };
    });
  }

  /**
   * Streams the bytes of an object from the network. The wait for the start of the response is bounded. Destroying the stream or
   * aborting the signal ends the request.
   */
  async stream(key: string, range: ByteRange, signal: AbortSignal): Promise<Readable> {
    const beginning = new AbortController();
    const timer = setTimeout(() => beginning.abort(), SHORT.totalMs);
    return s3Call("reading an object", async () => {
      const input = {
        Bucket: this.name,
        Key: key,
        Range: `bytes=${range.first}-${range.last}`,
      };
      const { Body } = await this.client.send(new GetObjectCommand(input), {
        abortSignal: AbortSignal.any([signal, beginning.signal]),
        requestTimeout: SHORT.tryMs,
      });
      if (Body === undefined) throw new Error("the answer has no body");
      return Body as Readable;
    }).finally(() => clearTimeout(timer));
  }

  /** Size and time of an object, or undefined when there is none. */
  async head(key: string): Promise<{ size: number; modified: Date } | undefined> {
    try {
      return await s3Call("looking at an object", async () => {
        const input = { Bucket: this.name, Key: key };
        const command = new HeadObjectCommand(input);
        const { ContentLength, LastModified } = await this.client.send(command, within(SHORT));
        // A guess could let an object that is whole and in use look damaged or unused, and the sweep would delete it.
        if (ContentLength === undefined || LastModified === undefined)
          throw new Error("the answer is not complete");
        return { size: ContentLength, modified: LastModified };
      });
    } catch (error) {
      if (error instanceof StoreError && error.failure === "not_found") return undefined;
      throw error;
    }
  }

  /** Removes an object. A missing object is no error. */
  async delete(key: string): Promise<void> {
    const input = { Bucket: this.name, Key: key };
    await s3Call("deleting an object", () => this.client.send(new DeleteObjectCommand(input), within(SHORT)));
  }

  /** All objects below a prefix, in the order of their keys, with one page in memory at a time. */
  async *list(prefix: string): AsyncGenerator<Listed> {
    let token: string | undefined;
    do {
      const input = { Bucket: this.name, Prefix: prefix, ...(token ? { ContinuationToken: token } : {}) };
      const page = await s3Call("listing objects", () =>
        this.client.send(new ListObjectsV2Command(input), within(SHORT)),
      );
      for (const { Key, Size, LastModified } of page.Contents ?? []) {
        if (Key?.startsWith(prefix)) {
          yield { key: Key, size: Size ?? 0, modified: LastModified ?? new Date() };
        }
      }
      token = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  async isEmpty(prefix: string): Promise<boolean> {
    for await (const _any of this.list(prefix)) return false;
    return true;
  }

  /** Multipart uploads below a prefix that were neither completed nor aborted. */
  async *openUploads(prefix: string): AsyncGenerator<OpenUpload> {
    let marker: { KeyMarker: string; UploadIdMarker: string } | undefined;
    do {
      const input = { Bucket: this.name, Prefix: prefix, ...marker };
      const page = await s3Call("listing uploads", () =>
        this.client.send(new ListMultipartUploadsCommand(input), within(SHORT)),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (Key !== undefined && UploadId !== undefined) {
          yield { key: Key, uploadId: UploadId, begun: Initiated ?? new Date() };
        }
      }
      const [KeyMarker, UploadIdMarker] = [page.NextKeyMarker, page.NextUploadIdMarker];
      marker = page.IsTruncated && KeyMarker && UploadIdMarker ? { KeyMarker, UploadIdMarker } : undefined;
    } while (marker !== undefined);
  }

  /** Aborts an upload. An upload that has already ended is no error. */
  async abortUpload(key: string, uploadId: string): Promise<void> {
    const input = { Bucket: this.name, Key: key, UploadId: uploadId };
    await s3Call("aborting an upload", () =>
      this.client.send(new AbortMultipartUploadCommand(input), within(SHORT)).catch((error: unknown) => {
        if ((error as Error).name !== "NoSuchUpload") throw error;
      }),
    );
  }
}
