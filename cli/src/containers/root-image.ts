/**
 * Makes a symbolic link point to the root image for svc-runner, and builds that image when it does not exist. Argument: the
 * link. SVC_LANGUAGES and SVC_PACKAGES choose its content, as for `./svc up`.
 */
import { buildImage, chooseImage } from "../install/image.ts";
import { resolveInstance } from "../instance.ts";

const [link] = process.argv.slice(2);
if (link === undefined) throw new Error("the link is missing");
const choice = chooseImage({}, process.env);
await buildImage(resolveInstance({}, process.env), { choice, link }, (line) => console.error(line));
