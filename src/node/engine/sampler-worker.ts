// A thread that samples under slow grammars; started and ended by spawn-samplers.ts.
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { assert } from '../../core/errors.ts';
import { createSamplerServer } from '../../engine/slow-grammars/sampler-server.ts';
import type { SamplerTask } from '../../engine/slow-grammars/types.ts';

/** Below the threads that generate. On Linux it is about this thread only. */
const NICENESS = 5;
if (process.platform === 'linux') setPriority(0, NICENESS);

const port = parentPort;
assert(port !== null, 'sampler-worker runs as a worker thread');
const server = createSamplerServer((answer) => port.postMessage(answer));
port.on('message', (task: SamplerTask) => server.handle(task));
