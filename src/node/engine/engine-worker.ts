// The engine's thread; started and ended by spawn-engine.ts.
import { parentPort } from 'node:worker_threads';
import { assert } from '../../core/errors.ts';
import type { ClientMessage } from '../../engine/protocol.ts';
import { collectWhenIdle } from '../../platform/node/process/collect-when-idle.ts';
import { hostEngine } from './engine-host.ts';

const port = parentPort;
assert(port !== null, 'engine-worker runs as a worker thread');

collectWhenIdle();
const server = hostEngine((message) => port.postMessage(message));
port.on('message', (message: ClientMessage) => server.handle(message));
