import { refusal } from '../errors.ts';
import type { Exchange } from '../route.ts';
import type { StoredObject, StoredType } from './types.ts';
import { messageOf } from '../../core/errors.ts';

const NAMES: Readonly<Record<StoredType, string>> = {
  response: 'response',
  conversation: 'conversation',
  'chat.completion': 'chat completion',
};

/** A 404 for an object that does not exist or belongs to another tenant. */
export function notFound(
  type: StoredType,
  id: string,
  { code = 'not_found', param = null as string | null } = {},
): Error {
  return refusal(404, code, `${NAMES[type]} ${JSON.stringify(id.slice(0, 200))} not found`, { param });
}

/** A stored object of the caller's tenant; a 404 if there is none. */
export async function findStored<T extends StoredType>(
  { caller, services }: Exchange,
  type: T,
  id: string,
  error: { code?: string; param?: string } = {},
): Promise<StoredObject<T>> {
  const object = await services.stored.find(caller.tenant, type, id);
  if (object === null) throw notFound(type, id, error);
  return object;
}

/** Deletes a stored object of the caller's tenant; a 404 if there is none. */
export async function deleteStored({ caller, services }: Exchange, type: StoredType, id: string): Promise<void> {
  if (!(await services.stored.delete(caller.tenant, type, id))) throw notFound(type, id);
}

/** Changes a stored object of the caller's tenant; a 404 if there is none. */
export async function updateStored<T extends StoredType>(
  { caller, services }: Exchange,
  type: T,
  id: string,
  change: (object: StoredObject<T>) => StoredObject<T>,
): Promise<StoredObject<T>> {
  const object = await services.stored.update(caller.tenant, type, id, change);
  if (object === null) throw notFound(type, id);
  return object;
}

/** Waits until an answer is on disk, so that a kill after the reply cannot lose it. False, and a line in the log: it is not stored. */
export async function storeAnswer({ caller, services }: Exchange, writing: Promise<unknown>): Promise<boolean> {
  const refuse = (reason: string): false => {
    services.logger.log('error', 'storing an answer failed', { requestId: caller.requestId, reason });
    return false;
  };
  try {
    return (await writing) !== false || refuse('it exceeds the limit of stored bytes');
  } catch (error) {
    return refuse(messageOf(error));
  }
}
