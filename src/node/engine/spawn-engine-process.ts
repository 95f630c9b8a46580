import { type ChildProcess, fork, type Serializable } from 'node:child_process';
import { systemClock, within } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { ServerMessage } from '../../engine/protocol.ts';
import type { Transport } from '../../runtime/engine-client.ts';
import type { EngineWarningMessage } from './engine-host.ts';

/** The kernel ends a killed process soon, unless it waits for a device. */
const KILL_MS = 2000;

function startProcess(): ChildProcess {
  return fork(new URL('./engine-process.js', import.meta.url), {
    execArgv: [],
    // Structured clone, for typed arrays and binary keys. Arrays in shared memory, such as token tables, are copied.
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

/**
 * Starts an engine in its own process: a fault of native code ends its requests, not the program. Works only in the built
 * package, because the child is a .js file.
 */
export function spawnEngineProcess(child = startProcess()): Transport {
  let isClosed = false;
  let onLost = (_error: RuvLLMError): void => {};
  const exited = new Promise<void>((resolve) => {
    const end = (error: RuvLLMError): void => {
      if (!isClosed) onLost(error);
      isClosed = true;
      resolve();
    };
    child.on('exit', (exitCode, signal) => end(describeExit(exitCode, signal)));
    child.on('error', (cause) => {
      // A process that never started has no exit.
      if (child.pid === undefined)
        end(new RuvLLMError('io', `the engine process did not start: ${cause.message}`, { cause }));
    });
  });
  const setBusy = (isBusy: boolean): void => {
    const change = isBusy ? 'ref' : 'unref';
    child[change]();
    child.channel?.[change]();
  };
  setBusy(false);
  return {
    post(message) {
      // A message to a process that has just ended is lost with it: `exit` tells.
      if (!isClosed && child.connected) child.send(message as Serializable, () => {});
    },
    onMessage(listener) {
      child.on('message', (received) => {
        const message = received as ServerMessage | EngineWarningMessage;
        if (message.type === 'warning') process.emitWarning(message.warning.message, { code: message.warning.code });
        else listener(message);
      });
    },
    onLost(listener) {
      onLost = listener;
    },
    setBusy(isBusy) {
      if (!isClosed) setBusy(isBusy);
    },
    async close() {
      isClosed = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await within(systemClock, KILL_MS, exited);
    },
  };
}

function describeExit(exitCode: number | null, signal: NodeJS.Signals | null): RuvLLMError {
  const reason = signal === null ? `exited with code ${exitCode}` : `was ended by ${signal}`;
  return new RuvLLMError('engine_crashed', `the engine process ${reason}; the request can be sent again`, {
    data: { exitCode, signal },
    isRetryable: true,
  });
}
