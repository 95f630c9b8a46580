/** Entries of gateways in the header `via` (RFC 9110, 7.6.3): a request that comes back must end. */
const NAME = 'ruvllm-gateway-';
const ID_CHARS = 16;

export const createGatewayId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, ID_CHARS);

/** The header of a request that the gateway sends on. */
export function addVia(headers: Headers, gatewayId: string): string {
  const via = headers.get('via');
  return `${via === null ? '' : `${via}, `}1.1 ${NAME}${gatewayId}`;
}

/** Whether a gateway sent the request. */
export const isFromGateway = (headers: Headers): boolean => headers.get('via')?.includes(NAME) === true;

/** Whether this very gateway sent it. */
export const isFromSelf = (headers: Headers, gatewayId: string): boolean =>
  headers.get('via')?.includes(`${NAME}${gatewayId}`) === true;
