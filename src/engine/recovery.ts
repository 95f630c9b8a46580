import type { Adapter } from '../adapters/index.ts';
import { messageOf, type RuvLLMError, serializeError } from '../core/errors.ts';
import type { Engine } from './engine.ts';
import type { OpenedEngine } from './open-engine.ts';
import type { ModelReport, ModelSpec, ServerMessage } from './protocol.ts';
import type { EngineEvent } from './types.ts';

/** Replaces an engine whose device is gone: its sequences continue on the processor, from the tokens they have. */
export interface Recovery {
  /** Remembers a loaded adapter for the next engine. */
  keep(id: number, adapter: Adapter): void;
  drop(id: number): void;
  /** The engine that continues; null if there can be none, and then all sequences have failed. */
  replace(engine: Engine, lost: RuvLLMError): Promise<{ engine: Engine | null; report: ModelReport | null }>;
}

export interface RecoveryOptions {
  readonly spec: ModelSpec;
  readonly open: (spec: ModelSpec) => Promise<OpenedEngine>;
  readonly warn: (message: string) => void;
  readonly post: (message: ServerMessage) => void;
}

export function createRecovery({ spec, open, warn, post }: RecoveryOptions): Recovery {
  const adapters = new Map<number, Adapter>();
  const fail = (id: number, error: unknown): EngineEvent => ({ type: 'failed', id, error: serializeError(error) });

  /** Requests with one that does not fit fail when they are added. */
  function loadAdapters(engine: Engine): void {
    for (const [id, adapter] of adapters) {
      try {
        engine.loadAdapter(id, adapter);
      } catch (error) {
        adapters.delete(id);
        warn(`adapter ${id} could not be loaded again: ${messageOf(error)}`);
      }
    }
  }

  return {
    keep: (id, adapter) => void adapters.set(id, adapter),
    drop: (id) => void adapters.delete(id),
    async replace(engine, lost) {
      warn(`${lost.message}; the model is loaded again for the processor`);
      // Requests and aborts that arrive meanwhile still reach the lost engine.
      const opened = await open({ ...spec, kernels: 'auto', gpuLayers: 'auto', gpuMemoryBytes: null }).catch(
        (error: unknown) => {
          warn(`the model could not be loaded again: ${messageOf(error)}`);
          return null;
        },
      );
      const { events, requests } = await engine.handOver();
      const next = opened?.engine ?? null;
      if (next !== null) loadAdapters(next);
      for (const request of requests) {
        try {
          if (next === null) events.push(fail(request.id, lost));
          else next.add(request);
        } catch (error) {
          events.push(fail(request.id, error));
        }
      }
      if (events.length > 0) post({ type: 'events', events });
      if (opened !== null) post({ type: 'replaced', model: opened.report });
      await engine.dispose();
      return { engine: next, report: opened?.report ?? null };
    },
  };
}
