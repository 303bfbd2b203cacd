import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv", parse_dates=["date"])
sales["revenue"] = sales.units * sales.price

table = sales.pivot_table(index="region", columns="product", values="revenue", aggfunc="sum")
print(table.round(0).astype(int).to_string())

months = sales.groupby([sales.date.dt.month, "product"]).revenue.sum().unstack()
months.plot(marker="o", xlabel="month of 2025", ylabel="revenue", title="Revenue by product")
plt.savefig("plot.png", dpi=120)
