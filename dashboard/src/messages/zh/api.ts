import type { Messages } from '../en/index.ts';

export const api: Messages['api'] = {
  unreachable: '无法连接服务器。请检查服务器是否在运行，以及此设备是否已联网。',
  lostConnection: (reason) => `与服务器的连接已断开：${reason}`,
  incomplete: '回答尚未完成，数据流就已结束。',
  ended: '服务器关闭了数据流。',
};
