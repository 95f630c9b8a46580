// The model of the examples: the first argument, else what `npm start` would take (RUVLLM_MODEL, the cache, a download).
import { createHub } from 'ruvllm/hub';
import { createNodeHubPlatform } from 'ruvllm/node';

const hub = createHub({ platform: createNodeHubPlatform() });
const named = process.argv[2];

/** Where its file is. In a program of your own a path or `owner/repo:QUANT` in its place is enough for `loadModel`. */
export const modelPath =
  named === undefined ? (await hub.resolveDefaultModel()).path : await hub.resolveModelPath(named, { download: true });
