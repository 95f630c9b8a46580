import { createEngineServer, type EngineServer } from '../../engine/engine-server.ts';
import type { ServerMessage } from '../../engine/protocol.ts';
import { createSampler } from '../../sampling/sampler.ts';
import { spawnSamplers } from './spawn-samplers.ts';
import { type EngineWarning, openEngineModel } from './engine-model.ts';

/** Messages of an engine to the process that started it, not to its client. */
export interface EngineWarningMessage {
  readonly type: 'warning';
  readonly warning: EngineWarning;
}

/** An engine server that owns its thread or process. */
export function hostEngine(post: (message: ServerMessage | EngineWarningMessage) => void): EngineServer {
  return createEngineServer({
    post,
    // Warnings go to the main thread, where the program listens to `process.on('warning')`.
    openModel: (spec, onProgress) => openEngineModel(spec, onProgress, (warning) => post({ type: 'warning', warning })),
    createSampler,
    now: () => performance.now(),
    // Immediates run after the messages of the same event loop turn.
    yieldToMessages: () => new Promise((resolve) => setImmediate(resolve)),
    samplers: { spawn: spawnSamplers, sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) },
    onCrash(error) {
      // Outside of any promise, so that the error ends the thread or process and is reported.
      setImmediate(() => {
        throw error;
      });
    },
  });
}
