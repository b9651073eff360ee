import { expect, it } from 'vitest';
import { inChinese } from '../../src/state/warningwords.ts';

it('says warnings in Chinese, with what differs in its place', () => {
  expect(inChinese('3 operators (1, 2, 3) never ran: their place in the order is not known')).toBe(
    ' 3 个算子 (1, 2, 3)从未运行，执行次序未知',
  );
  expect(inChinese('2 entries of node_data could not be understood and were left out')).toBe('node_data 中有 2 个条目无法识别，已略去');
  expect(inChinese('12 aten.mm operators in net/fc (backward) are not in the graph: nobody saw it')).toBe(
    'net/fc backward 中有 12 个 aten.mm 算子不在图中：nobody saw it',
  );
  expect(inChinese('what nobody has translated')).toBe('what nobody has translated');
});
