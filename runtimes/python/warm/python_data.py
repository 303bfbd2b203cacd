"""The zygote of programs that calculate and plot."""

import _svc_zygote


def use():
    """The first time costs more than all others: fonts, caches of layouts and types, methods that are made when they are needed."""
    import io
    import warnings

    import matplotlib.font_manager
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.DataFrame({"name": ["a", "b", "a"], "day": pd.to_datetime(["2024-01-01"] * 3), "value": [1.0, 2.5, np.nan]})
        text = frame.to_csv(index=False)
        frame = pd.read_csv(io.StringIO(text))
        frame.groupby("name")["value"].agg(["mean", "sum", "count"])
        frame.describe()
        frame.merge(frame, on="name").sort_values("value_x").pivot_table(index="name", values="value_x")
        str(frame)
        np.linalg.solve(np.eye(3), np.ones(3))
        figure, axes = plt.subplots(1, 2)
        axes[0].plot([1, 2, 3], label="line")
        axes[0].legend()
        axes[0].set_title("$x^2$")
        axes[1].bar(["a", "b"], [1, 2])
        frame.plot(x="day", y="value", ax=plt.figure().subplots())
        figure.tight_layout()
        figure.savefig(io.BytesIO(), format="png")
        plt.close("all")
    # Fonts hold open files, which no copy inherits.
    matplotlib.font_manager._get_font.cache_clear()


_svc_zygote.serve(
    """
    asyncio base64 collections.abc contextlib copy csv datetime decimal functools glob io itertools json logging math os pathlib
    pickle random re statistics string tempfile textwrap threading time traceback typing uuid
    numpy numpy.random pandas matplotlib.pyplot matplotlib.dates matplotlib.ticker
    """.split(),
    use,
    preludes=True,
)
