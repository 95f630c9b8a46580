// The engine in a process of its own; started and ended by spawn-engine-process.ts.
import { assert } from '../../core/errors.ts';
import type { ClientMessage } from '../../engine/protocol.ts';
import { hostEngine } from './engine-host.ts';

assert(process.send !== undefined, 'engine-process runs as a child process with a channel');

const server = hostEngine((message) => {
  // The parent may end at any moment.
  if (process.connected) process.send!(message, undefined, undefined, () => {});
});
process.on('message', (message: ClientMessage) => server.handle(message));
// A terminal sends its signals to both processes: the parent decides how requests end.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.on('disconnect', () => process.exit());
