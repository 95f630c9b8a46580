import { DEFAULT_TENANT } from '../runtime/generate-options.ts';
import type { Caller } from './caller.ts';
import { refusal } from './errors.ts';
import { KEY_SCOPES, type KeyScope, type KeyStore } from './keys/key-store.ts';

/** Which scopes of a key open a route. */
const OPENED_BY: Readonly<Record<Exclude<RouteScope, 'public'>, readonly KeyScope[]>> = {
  read: ['read-only', 'inference', 'admin'],
  inference: ['inference', 'admin'],
  operate: ['read-only', 'admin'],
  admin: ['admin'],
};

/** Which routes a key with these scopes opens, by what routes ask for. */
export function allowedBy(scopes: readonly KeyScope[]): Readonly<Record<Exclude<RouteScope, 'public'>, boolean>> {
  const opens = (scope: Exclude<RouteScope, 'public'>): boolean =>
    OPENED_BY[scope].some((opening) => scopes.includes(opening));
  return { read: opens('read'), inference: opens('inference'), operate: opens('operate'), admin: opens('admin') };
}

/** Says who makes a request and whether the route is open to them. */
export interface Guard {
  /** Nobody needs a key. */
  readonly isOpen: boolean;
  /** Throws 401 or 403. */
  admit(headers: Headers, scope: RouteScope): Promise<Pick<Caller, 'tenant' | 'keyId' | 'scopes'>>;
  /** From now on everyone needs a key. */
  requireKeys(): void;
}

/** With `isOpen` everyone is admitted until `requireKeys`. */
export function createGuard({ keys, isOpen: startsOpen }: { keys: KeyStore; isOpen: boolean }): Guard {
  let isOpen = startsOpen;
  return {
    get isOpen() {
      return isOpen;
    },
    requireKeys() {
      isOpen = false;
    },
    async admit(headers, scope) {
      if (scope === 'public') return { tenant: DEFAULT_TENANT, keyId: null, scopes: [] };
      if (isOpen) return { tenant: DEFAULT_TENANT, keyId: null, scopes: KEY_SCOPES };
      const token = readToken(headers);
      if (token === null) throw denied('missing_api_key', 'an API key is needed: Authorization: Bearer KEY');
      const key = await keys.verify(token);
      if (key === null) throw denied('invalid_api_key', 'the API key is not valid');
      if (!allowedBy(key.scopes)[scope]) {
        throw refusal(
          403,
          'insufficient_scope',
          `the key allows ${key.scopes.join(', ')}; this needs ${OPENED_BY[scope].join(' or ')}`,
          { type: 'permission_error', caller: { tenant: key.tenant, keyId: key.id } },
        );
      }
      return { tenant: key.tenant, keyId: key.id, scopes: key.scopes };
    },
  };
}

/** OpenAI's clients send a bearer token, Anthropic's their own header. */
function readToken(headers: Headers): string | null {
  const bearer = /^Bearer +(\S+)\s*$/i.exec(headers.get('authorization') ?? '')?.[1];
  return bearer ?? headers.get('x-api-key');
}

function denied(code: string, message: string): Error {
  return refusal(401, code, message, { type: 'authentication_error' });
}

/** What a key must allow for a route; `public` routes need no key, `operate` is for what tells of all tenants together. */
export type RouteScope = 'public' | 'read' | 'inference' | 'operate' | 'admin';
