// The model of the examples: the first argument, else the one of `npm start` (RUVLLM_MODEL, the cache, a download).
import { createHub } from 'ruvllm/hub';
import { createNodeHubPlatform } from 'ruvllm/node';

const hub = createHub({ platform: createNodeHubPlatform() });
const named = process.argv[2];

/** The path of its file. In your program pass a path or `owner/repo:QUANT` to `loadModel` instead. */
export const modelPath =
  named === undefined ? (await hub.resolveDefaultModel()).path : await hub.resolveModelPath(named, { download: true });
