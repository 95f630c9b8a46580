import { signal } from '@preact/signals';
import { api, onSignOut, who } from '../../app/session.ts';
import type { ModelEntry } from '../../api/types.ts';
import { messageOf } from '../../api/errors.ts';

/** What can be asked for, the first being asked where nothing was chosen. */
export const models = signal<readonly ModelEntry[]>([]);
export const modelsFailure = signal('');

onSignOut(() => {
  models.value = [];
  modelsFailure.value = '';
});

let loading = Promise.resolve();

export function loadModels(): Promise<void> {
  loading = load();
  return loading;
}

async function load(): Promise<void> {
  try {
    models.value = sortModels(await api.models(), who.value?.route_alias ?? null);
    modelsFailure.value = '';
  } catch (error) {
    modelsFailure.value = messageOf(error);
  }
}

/** The one that chooses first, then what is loaded, then the rest as the server has it. */
export function sortModels(found: readonly ModelEntry[], alias: string | null): ModelEntry[] {
  const rank = ({ id, state }: ModelEntry): number => (id === alias ? 0 : state === 'loaded' ? 1 : 2);
  return [...found].sort((a, b) => rank(a) - rank(b));
}

/** The model a conversation is answered by, once it is known which there are: who types quickly is not ignored. */
export async function settledModelOf(chosen: string | null): Promise<string> {
  await loading;
  return modelOf(chosen);
}

/** The model a conversation is answered by; empty: there is none. */
export function modelOf(chosen: string | null): string {
  return models.value.find(({ id }) => id === chosen)?.id ?? models.value[0]?.id ?? '';
}
