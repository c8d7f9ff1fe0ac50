//! The help text.

use crate::lang::Lang;

/// All commands, one line each.
pub(super) fn text(lang: Lang) -> String {
    lang.pick(
        "cargo mini COMMAND        (in workshop/mini also: ./mini COMMAND)

  setup                   check this computer, fetch and build everything; afterwards no network is needed
  start [--lang en|ja] [--minutes 90|60]
                          copy the skeleton to workshop/mini
  test [N] [--only] [--unit] [--seed S] [--against HOST:PORT]
                          test steps 1 to N (without N: all up to the first red one)
  hint [N]                a hint for step N (without N: for the step you are at); each call says more, three in all
  progress                a bar, and what is next
  watch                   test again on every save (Ctrl+C ends it)
  run [--port PORT]       start your server (port 6379; Ctrl+C stops it)
  cli [--port PORT] [WORD...]
                          a small redis-cli
  diff N                  your files beside the model answer of step N
  catch-up N [--yes]      replace src/ by the steps up to N; your files are kept beside it
  help                    this text",
        "cargo mini コマンド         （workshop/mini では ./mini コマンド でも同じ）

  setup                   環境を確認し、必要なものを取得・ビルドする。その後はネットワーク不要
  start [--lang en|ja] [--minutes 90|60]
                          雛形を workshop/mini にコピーする
  test [N] [--only] [--unit] [--seed S] [--against HOST:PORT]
                          ステップ 1〜N をテストする（N を省略すると、最初に失敗するまで全部）
  hint [N]                ステップ N のヒント（N を省略すると今のステップ）。呼ぶたびに詳しくなり、全部で 3 つ
  progress                進み具合と、次にすること
  watch                   保存するたびにテストする（Ctrl+C で終了）
  run [--port PORT]       自分のサーバを起動する（ポート 6379、Ctrl+C で停止）
  cli [--port PORT] [語...]
                          小さな redis-cli
  diff N                  自分のファイルとステップ N の模範解答を並べて表示する
  catch-up N [--yes]      src/ をステップ N までの模範解答に置き換える。元のファイルは隣に残す
  help                    この説明を表示する",
    )
    .to_string()
}
