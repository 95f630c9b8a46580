import { deserializeError, RuvLLMError, type SerializedError, serializeError } from './errors.ts';

/** A method call to another thread, as plain data. */
export interface RemoteCall {
  readonly callId: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export type RemoteReply =
  { readonly callId: number; readonly value: unknown } | { readonly callId: number; readonly error: SerializedError };

/** The connection to another thread. */
export interface CallTransport {
  post(call: RemoteCall): void;
  /** `onEnd`: no more replies will come. */
  listen(onReply: (reply: RemoteReply) => void, onEnd: (reason: string) => void): void;
  /** Whether replies are pending: only a busy thread keeps the process alive. */
  setBusy(isBusy: boolean): void;
  end(): Promise<void>;
}

/** The methods that can be called remotely; a missing one does not compile. */
export type MethodList<T> = Readonly<Record<keyof T, true>>;

/** Serves calls that arrive as messages; every call gets exactly one reply. */
export function serveCalls<T extends object>(
  object: T,
  methods: MethodList<T>,
  post: (reply: RemoteReply) => void,
): (call: RemoteCall) => void {
  async function answer({ callId, method, args }: RemoteCall): Promise<RemoteReply> {
    try {
      if (!Object.hasOwn(methods, method)) throw new RuvLLMError('internal', `unknown method ${method}`);
      const target = object as unknown as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
      return { callId, value: await target[method]!(...args) };
    } catch (error) {
      return { callId, error: serializeError(error) };
    }
  }
  return (call) => {
    void answer(call).then((reply) => {
      try {
        post(reply);
      } catch (error) {
        // A value that cannot be cloned is a bug; without a reply the caller would wait forever.
        post({ callId: call.callId, error: serializeError(error) });
      }
    });
  };
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: RuvLLMError): void;
}

export interface Remote<T> {
  readonly object: T;
  /** No more replies will come. */
  readonly hasEnded: boolean;
  end(): Promise<void>;
}

/** A proxy for an object in another thread; `name` appears in error messages. */
export function createRemote<T extends object>(
  transport: CallTransport,
  methods: MethodList<T>,
  { name, maxPending = 10_000 }: { readonly name: string; readonly maxPending?: number },
): Remote<T> {
  const pending = new Map<number, Pending>();
  let nextId = 1;
  let ended: RuvLLMError | null = null;

  const finish = (error: RuvLLMError): void => {
    ended ??= error;
    for (const { reject } of pending.values()) reject(ended);
    pending.clear();
  };

  transport.listen(
    (reply) => {
      const call = pending.get(reply.callId);
      pending.delete(reply.callId);
      if (pending.size === 0) transport.setBusy(false);
      if ('error' in reply) call?.reject(deserializeError(reply.error));
      else call?.resolve(reply.value);
    },
    (reason) => finish(new RuvLLMError('io', `the thread for ${name} ended: ${reason}`, { data: { reason } })),
  );

  function call(method: string, args: readonly unknown[]): Promise<unknown> {
    if (ended !== null) return Promise.reject(ended);
    if (pending.size >= maxPending) {
      const message = `${pending.size} calls are already waiting for ${name}`;
      return Promise.reject(new RuvLLMError('overloaded', message, { data: { maxPending }, isRetryable: true }));
    }
    return new Promise((resolve, reject) => {
      const callId = nextId++;
      if (pending.size === 0) transport.setBusy(true);
      pending.set(callId, { resolve, reject });
      try {
        transport.post({ callId, method, args });
      } catch (error) {
        pending.delete(callId);
        if (pending.size === 0) transport.setBusy(false);
        reject(
          new RuvLLMError('invalid_option', `${method}: the arguments cannot be sent to another thread`, {
            cause: error,
          }),
        );
      }
    });
  }

  const names = Object.keys(methods);
  const object = Object.fromEntries(
    names.map((method) => [method, (...args: readonly unknown[]) => call(method, args)]),
  );
  return {
    object: object as unknown as T,
    get hasEnded() {
      return ended !== null;
    },
    async end() {
      finish(new RuvLLMError('io', `${name} is closed`));
      await transport.end();
    },
  };
}
