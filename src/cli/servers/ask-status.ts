import { RuvLLMError } from '../../core/errors.ts';
import { askServer, ifForbidden, type NamedServer } from './ask-server.ts';

/** A model of a running server; numbers are null if it is not loaded or the API key may not see them. */
export interface RunningModel {
  readonly id: string;
  readonly state: string;
  readonly numRunning: number | null;
  readonly numWaiting: number | null;
  readonly usedBytes: number | null;
  readonly budgetBytes: number | null;
  readonly numGeneratedTokens: number | null;
  readonly memoryBytes: number | null;
}

export interface ServerStatus {
  readonly version: string;
  readonly startedMs: number;
  readonly isOpen: boolean;
  /** null if the API key may not see it. */
  readonly numRequests: number | null;
  readonly models: readonly RunningModel[];
}

interface Props {
  readonly version: string;
  readonly started: number;
  readonly is_open: boolean;
  readonly models: readonly { id: string; state: string; info: { memory?: { totalBytes?: number } } | null }[];
}

interface Slots {
  readonly num_requests: number;
  readonly slots: readonly {
    readonly model: string;
    readonly numRunning: number;
    readonly numWaiting: number;
    readonly numGeneratedTokens: number;
    readonly cache: { readonly usedBytes: number; readonly budgetBytes: number };
  }[];
}

export async function askStatus(server: NamedServer): Promise<ServerStatus> {
  const get = (path: string): Promise<unknown> =>
    askServer(server, { method: 'GET', url: new URL(`${server.base}${path}`), body: null });
  const props = (await get('/props')) as Partial<Props>;
  if (typeof props.version !== 'string' || !Array.isArray(props.models)) {
    throw new RuvLLMError('remote_failed', `${server.base} is not a ruvllm server`);
  }
  const slots = (await get('/slots').catch(ifForbidden)) as Slots | null;
  return {
    version: props.version,
    startedMs: props.started! * 1000,
    isOpen: props.is_open === true,
    numRequests: slots?.num_requests ?? null,
    models: (props as Props).models.map(({ id, state, info }) => {
      const slot = slots?.slots.find(({ model }) => model === id);
      return {
        id,
        state,
        numRunning: slot?.numRunning ?? null,
        numWaiting: slot?.numWaiting ?? null,
        usedBytes: slot?.cache.usedBytes ?? null,
        budgetBytes: slot?.cache.budgetBytes ?? null,
        numGeneratedTokens: slot?.numGeneratedTokens ?? null,
        memoryBytes: info?.memory?.totalBytes ?? null,
      };
    }),
  };
}
