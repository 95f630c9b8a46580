import { deserializeError, RuvLLMError, type SerializedError, serializeError } from './errors.ts';

/** A call of a method that lives in another thread; plain data. */
export interface RemoteCall {
  readonly callId: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export type RemoteReply =
  { readonly callId: number; readonly value: unknown } | { readonly callId: number; readonly error: SerializedError };

/** The way to another thread. */
export interface CallTransport {
  post(call: RemoteCall): void;
  /** `onEnd`: nothing will be answered any more. */
  listen(onReply: (reply: RemoteReply) => void, onEnd: (reason: string) => void): void;
  /** Whether somebody waits for an answer: a thread that nobody waits for does not keep the process. */
  setBusy(isBusy: boolean): void;
  end(): Promise<void>;
}

/** Which methods of an object can be called from elsewhere; one that is left out does not compile. */
export type MethodList<T> = Readonly<Record<keyof T, true>>;

/** Answers calls that come as messages; every call gets one reply, whatever happens. */
export function serveCalls<T extends object>(
  object: T,
  methods: MethodList<T>,
  post: (reply: RemoteReply) => void,
): (call: RemoteCall) => void {
  async function answer({ callId, method, args }: RemoteCall): Promise<RemoteReply> {
    try {
      if (!Object.hasOwn(methods, method)) throw new RuvLLMError('internal', `unknown method ${method}`);
      const target = object as unknown as Readonly<Record<string, (...given: readonly unknown[]) => unknown>>;
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
        // What cannot be cloned is a bug; without a reply the caller would wait for ever.
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
  /** Nothing will be answered any more. */
  readonly hasEnded: boolean;
  end(): Promise<void>;
}

/** The object of another thread, method by method; `name` is what its messages call it. */
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
