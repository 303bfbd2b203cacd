/** Secrets of tests are made anew for each run: no usable one stands in this repository. */
import { randomBytes } from "node:crypto";

export const newSecret = () => randomBytes(32).toString("base64url");
