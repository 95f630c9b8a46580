import { signal } from '@preact/signals';
import { api, who } from '../../app/session.ts';
import type { ModelEntry } from '../../api/types.ts';
import { messageOf } from '../../api/errors.ts';

/** What can be asked for, the first being asked where nothing was chosen. */
export const models = signal<readonly ModelEntry[]>([]);
export const modelsFailure = signal('');

export async function loadModels(): Promise<void> {
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

/** The model a conversation is answered by; empty: there is none. */
export function modelOf(chosen: string | null): string {
  return models.value.find(({ id }) => id === chosen)?.id ?? models.value[0]?.id ?? '';
}
