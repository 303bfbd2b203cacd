/**
 * Makes a link lead to the root image that goes into svc-runner, which is built where there is none. Argument: the link.
 * SVC_LANGUAGES and SVC_PACKAGES choose what is in it, as for `./svc up`.
 */
import { buildImage, chooseImage } from "../install/image.ts";
import { resolveInstance } from "../instance.ts";

const [link] = process.argv.slice(2);
if (link === undefined) throw new Error("the link is missing");
const choice = chooseImage({}, process.env);
await buildImage(resolveInstance({}, process.env), { choice, link }, (line) => console.error(line));
